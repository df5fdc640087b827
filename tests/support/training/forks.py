"""Task processes that begin as copies of one that has loaded TensorFlow, which takes each a second and more of a core.

Each is a process of its own, with its own session, log and environment, and ends with the test's process.
``python -m tests.support.training.forks`` is the program of the process that is copied.
"""

import atexit
import ctypes
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import lru_cache
from typing import Any, Dict, List, Optional, Union

from tests.support import ROOT

_WAIT_S = 0.02


class ForkServer:
    """A process that forks tasks. Two of them differ in the order of their sets, as any two processes do."""

    def __init__(self) -> None:
        argv = [sys.executable, "-m", "tests.support.training.forks"]
        self._process = subprocess.Popen(
            argv, cwd=str(ROOT), stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._lock = threading.Lock()
        _running.append(self)

    def start(self, module: str, args: List[str], env: Dict[str, str], log: str) -> "Forked":
        """Start ``python -m module`` in the root folder; its output is added to ``log``."""
        return Forked(self, self.ask({"module": module, "args": args, "env": env, "log": log}))

    def ask(self, request: Union[int, Dict[str, Any]]) -> Any:
        """Start a process and return its id, or return the exit code of the one with an id; None while it runs."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
            return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        """End the process, and with it all tasks that it has forked."""
        self._process.communicate()


_running: List[ForkServer] = []


@atexit.register
def end_servers() -> None:
    """End all servers of this process; others start with the next tasks."""
    while _running:
        _running.pop().end()
    server.cache_clear()


@lru_cache(maxsize=None)
def server(number: int) -> ForkServer:
    """Return one of the servers of this process, which starts with its first task."""
    return ForkServer()


class Forked:
    """A task, with the methods of ``subprocess.Popen``."""

    def __init__(self, server: ForkServer, pid: int):
        self.pid, self._server = pid, server
        self._code: Optional[int] = None

    def poll(self) -> Optional[int]:
        """Return the exit code, a signal as a negative number; None while the process runs."""
        if self._code is None:
            self._code = self._server.ask(self.pid)
        return self._code

    def wait(self, timeout: float) -> int:
        """Return the exit code as soon as there is one."""
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(_WAIT_S)
        assert self._code is not None
        return self._code

    def send_signal(self, number: int) -> None:
        """Send a signal to the process unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask the process to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process as a power cut would."""
        self.send_signal(signal.SIGKILL)


# -- in the process that is copied


def _serve() -> Dict[str, Any]:
    """Answer requests until there are no more; return only in a copy, with what it is to become."""
    for line in iter(sys.stdin.readline, ""):
        request = json.loads(line)
        answer = _exit_code(request) if isinstance(request, int) else os.fork()
        if answer == 0 and isinstance(request, dict):
            return request
        print(json.dumps(answer), flush=True)
    sys.exit()


def _exit_code(pid: int) -> Optional[int]:
    ended, status = os.waitpid(pid, os.WNOHANG)
    if not ended:
        return None
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _become(request: Dict[str, Any], parent: int, own: Dict[str, str]) -> None:
    ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: the kernel kills it when its parent ends
    if os.getppid() != parent:
        os._exit(1)
    os.setsid()
    _redirect(request["log"])
    os.environ.clear()
    os.environ.update({**own, **request["env"]})
    tempfile.tempdir = None  # the one that is copied knows its own
    sys.modules["numpy"].random.seed()  # Python seeds its own in a fork
    sys.argv[1:] = request["args"]
    runpy.run_module(request["module"], run_name="__main__", alter_sys=True)


def _redirect(path: str) -> None:
    nothing, log = os.open(os.devnull, os.O_RDONLY), os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    for source, target in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(nothing)
    os.close(log)


def _main() -> None:
    given, parent = set(os.environ), os.getpid()
    import cluster.runtime.tf_compat  # noqa: F401  # what all copies have loaded

    own = {name: value for name, value in os.environ.items() if name not in given}
    _become(_serve(), parent, own)


if __name__ == "__main__":
    _main()
