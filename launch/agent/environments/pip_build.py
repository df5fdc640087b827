"""The build of a Python environment on this host with pip, for ``launch setup``.

The launcher sends the request. The host asks for the files that it lacks with ``{"want": [SHA-256, …]}``, and the
launcher sends their bytes, one file after the other. During the build the host sends ``{"stage": …}`` at least every
``BEAT_S``, and at the end ``{"done": …}`` or ``{"error": …}``. When the launcher ends, the build ends and leaves no
process running.

The stages and the reason for a failure are read from pip's output.
"""

import errno
import os
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional
from urllib.parse import urlsplit

from launch.agent.environments.environment import VERSION, Busy, Environment, remove_unused
from launch.agent.environments.wheel_store import Broken, WheelStore
from launch.agent.errors import AgentError
from launch.agent.linux import processes
from launch.agent.linux.file_lock import NoLocks
from launch.agent.state.run_folder import expand
from launch.agent.wire.verb_requests import BuildRequest

_STAGES = (
    (re.compile(r"^Collecting ([A-Za-z0-9._-]+)"), "fetching {}"),
    (re.compile(r"^Building wheels? for collected packages: (.*)"), "building {}"),
    (re.compile(r"^Installing collected packages: (.*)"), "installing {}"),
)
_ADDRESS = re.compile(r"host='([^']+)', port=(\d+)")
_WRONG_HASH = re.compile(r"^\s+([A-Za-z0-9._-]+==\S+) from (\S+)", re.MULTILINE)
_FULL = "the disk is full ({free_mib} MB are free); free some space, or move workdir to a larger disk"
# Signs of a failure in pip's output, the more exact ones first, and the texts for them; {0} is the sign's first group.
_FAILURES = (
    (re.compile(r"No space left on device|Disk quota exceeded"), _FULL),
    (
        re.compile(r"No module named '?(ensurepip|venv)\b"),
        "Python {python} has no {0}, which makes environments; install it (Debian: apt install python{python}-venv), "
        "or name another Python with the key python",
    ),
    (
        re.compile(
            r"connection broken|NewConnectionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError|MaxRetryError"
        ),
        "the package index {index} cannot be reached from that host; name another in setup.index_url, or send the "
        "wheels from here: launch setup --wheels DIR (pip's output: {log})",
    ),
    (
        re.compile(r"No matching distribution found for ([^\s;(]+)"),
        "no file of {0} suits Python {python} here; add one to the wheel folder or the index, or name another Python "
        "with the key python (pip's output: {log})",
    ),
    (
        re.compile(r"DO NOT MATCH THE HASHES"),
        "the index's file of {wrong} is not the file in the lock; write the lock again (pip's output: {log})",
    ),
)


def stage_of(lines: Iterable[str]) -> Optional[str]:
    """Return pip's stage, such as ``fetching numpy``, from the last of ``lines`` that shows one; else None."""
    for line in reversed(list(lines)):
        for pattern, words in _STAGES:
            found = pattern.match(line.strip())
            if found:
                return words.format(_shortly(found.group(1)))
    return None


def _shortly(names: str) -> str:
    listed = names.split(", ")
    return listed[0] if len(listed) == 1 else f"{len(listed)} packages"


def explain_failure(output: str, log: str, python: str, free_mib: int, index: str = "") -> str:
    """Return the reason why a build failed, and the remedy.

    Args:
      output: the output of the build's last step; ``log`` is the path of the file with the whole output.
      free_mib: the free disk space before the failed build was removed; on a full disk, pip may print no error.
      python: the version of the environment's interpreter, such as ``3.7``.
      index: the host of the package index, if it is known.
    """
    address, wrong = _ADDRESS.search(output), _WRONG_HASH.search(output)
    known = {
        "log": log,
        "python": python,
        "free_mib": free_mib,
        "index": index or (f"{address[1]}:{address[2]}" if address else "that pip is set up with"),
        "wrong": wrong[1] if wrong else "a package",
    }
    if free_mib == 0:
        return _FULL.format(**known)
    for sign, text in _FAILURES:
        found = sign.search(output)
        if found:
            return text.format(*found.groups(), **known)
    printed = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in printed if line.startswith("ERROR:")]
    return f"{(errors or printed or ['no reason given'])[-1]}; correct that and retry (the whole output: {log})"


LOOK_S = 0.2
BEAT_S = 5.0
BUILD_S = 3600.0  # a build that takes longer hangs
# Variables that would direct pip to another place than the environment, or the environment to other packages.
_ASTRAY = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIREMENT", "PIP_CONSTRAINT")

Send = Callable[[Dict[str, Any]], None]


class Gone(AgentError):
    """The error that the launcher has ended, and no longer waits for the environment."""


class NotBuilt(AgentError):
    """The error that the build has failed. Its text gives the reason and advice."""


def build(request: BuildRequest, send: Send, read: Callable[[int], bytes], gone: Callable[[float], bool]) -> None:
    """Build the environment that a request describes; see ``Build`` for the arguments."""
    Build(request, send, read, gone).run()


class Build:
    """One build of an environment, which reports its stages to the launcher.

    Args:
      read: returns at most a given number of the bytes that the launcher sends.
      gone: waits a given number of seconds, or until the launcher ends; returns whether the launcher has ended.
    """

    def __init__(self, request: BuildRequest, send: Send, read: Callable[[int], bytes], gone: Callable[[float], bool]):
        self._request, self._send, self._read, self._gone = request, send, read, gone
        self._workdir = expand(request.workdir)
        self._environment = Environment(self._workdir, request.environment)
        self._store = WheelStore(self._workdir)
        self._until = time.monotonic() + BUILD_S
        self._sent_at = 0.0
        self._stage = ""

    def run(self) -> None:
        """Build the environment unless it is ready; send ``done`` or ``error``, unless the launcher has ended."""
        try:
            built = not self._environment.is_ready() and self._build_alone()
            self._environment.touch()
            self._store.remove_unused()
            removed = remove_unused(self._workdir, kept=self._environment.path.name)
            self._send({"done": "built" if built else "up to date", "removed": removed})
        except (NotBuilt, Broken, NoLocks) as error:
            self._send({"error": str(error)})
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            self._send({"error": self._explain("No space left on device" if full else str(error))})
        except (Gone, EOFError):
            return

    def _build_alone(self) -> bool:
        """Build the environment once no other process holds it; return whether a build was necessary."""
        while True:
            try:
                with self._environment.held(alone=True):
                    return not self._environment.is_ready() and self._build()
            except Busy:
                self._show("waiting until no other build or task uses this environment")
                self._wait()

    def _build(self) -> bool:
        self._environment.clear()
        try:
            self._take_files()
            self._install()
        except BaseException:
            self._environment.clear()  # frees the space; the log stays
            raise
        return True

    def _take_files(self) -> None:
        missing = self._store.missing(self._request.files)
        self._send({"want": [file.sha256 for file in missing]})
        for file in missing:
            self._store.receive(file, self._read)

    def _install(self) -> None:
        path, locks = self._environment.path, self._request.locks
        lock = locks.get(VERSION, locks["*"])
        (path / "tmp").mkdir(mode=0o700, parents=True)
        self._environment.log.write_bytes(b"")
        self._environment.log.chmod(0o600)
        self._show(f"making an environment of Python {VERSION}")
        self._step([sys.executable, "-m", "venv", "--without-pip", str(path)])
        # As a separate step: venv would hide its errors.
        self._step([str(self._environment.python), "-m", "ensurepip", "--default-pip"])
        if self._request.files:
            self._store.link(self._request.files, path / "tmp" / "wheels")
        for name, text in (("tools", lock.tools), ("all", lock.all)):
            if text:
                self._step([*self._pip(), "--requirement", self._written(f"{name}.txt", text)])
        shutil.rmtree(str(path / "tmp"))
        self._environment.seal()

    def _written(self, name: str, text: str) -> str:
        file = self._environment.path / name
        file.write_text(text)
        return str(file)

    def _pip(self) -> List[str]:
        """Return the start of pip's argv, without compilation, which takes minutes for all of TensorFlow."""
        argv = [str(self._environment.python), "-m", "pip", "install", "--no-deps", "--require-hashes"]
        argv += ["--no-build-isolation", "--no-compile", "--progress-bar", "off"]
        argv += ["--no-index"] if self._request.offline else []
        return argv + (["--find-links", str(self._environment.path / "tmp/wheels")] if self._request.files else [])

    def _environ(self) -> Dict[str, str]:
        env = {key: value for key, value in os.environ.items() if key not in _ASTRAY}
        env.update(PIP_DISABLE_PIP_VERSION_CHECK="1", PIP_NO_INPUT="1", PYTHONUNBUFFERED="1")
        env.update(TMPDIR=str(self._environment.path / "tmp"))
        if self._request.index_url:
            env["PIP_INDEX_URL"] = self._request.index_url  # not in argv: it may contain a password
            # An index without TLS is trusted once it is named: pip rejects packages without the lock's hash.
            env["PIP_TRUSTED_HOST"] = self._index()
        return env

    def _step(self, argv: List[str]) -> None:
        """Run one program to its end, or end the program when the launcher ends or the time is over."""
        log = self._environment.log
        began = log.stat().st_size
        process = processes.start(argv, self._environ(), self._environment.path, log)
        try:
            while not processes.has_exited(process.pid):
                self._show(stage_of(_tail(log, began)) or self._stage)
                self._wait()
        finally:
            _end(process.pid)
            code = process.wait()
        if code != 0:
            raise NotBuilt(self._explain("\n".join(_tail(log, began))))

    def _explain(self, output: str) -> str:
        free_mib = shutil.disk_usage(str(self._environment.path.parent)).free >> 20
        return explain_failure(output, str(self._environment.log), VERSION, free_mib, self._index())

    def _index(self) -> str:
        """Return the index's host, without secrets in its URL; "" for the index of pip's configuration."""
        return urlsplit(self._request.index_url or "").netloc.rpartition("@")[2]

    def _show(self, stage: str) -> None:
        """Report a new stage at once, and an old stage every ``BEAT_S``."""
        if stage != self._stage or time.monotonic() - self._sent_at > BEAT_S:
            self._stage, self._sent_at = stage, time.monotonic()
            self._send({"stage": stage})

    def _wait(self) -> None:
        if self._gone(LOOK_S):
            raise Gone
        if time.monotonic() > self._until:
            raise NotBuilt(f"not ready within {BUILD_S / 60:.0f} min, while {self._stage}")


def _end(leader: int) -> None:
    """Kill the remaining processes of a step; an incomplete environment is removed anyway."""
    while processes.group_members(leader):
        processes.signal_group(leader, signal.SIGKILL)
        time.sleep(0.01)


def _tail(log: Path, began: int) -> List[str]:
    """Return the lines that were printed since the log had ``began`` bytes."""
    with open(str(log), "rb") as file:
        file.seek(began)
        return file.read().decode(errors="replace").splitlines()
