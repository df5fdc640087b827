"""This host's Python, GPUs and disks, as ``launch check`` and ``launch diagnose`` collect them, in sections.

Sections run in parallel under one deadline. Every section has its own thread, because it may hang on a faulty file
server or driver. The caller does not wait for a section after the deadline.

The tasks' Python, started with the tasks' environment, reports its version and its packages. It imports TensorFlow,
because an installed TensorFlow does not always work.
"""

import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

from cluster.protocol.env_values import on_this_host
from cluster.protocol.typed_json import to_values
from launch.agent.containers.runtimes import Lacking
from launch.agent.containers.task_containers import OneShot
from launch.agent.environments.environment import Environment
from launch.agent.gpus import nvidia_smi
from launch.agent.gpus.assignment import allotted, who_holds
from launch.agent.gpus.nvidia_smi import Health, NoDriverAnswer
from launch.agent.linux import file_lock
from launch.agent.linux.kernel_log import Unreadable
from launch.agent.linux.processes import command_line, describe_exit, die_with
from launch.agent.state.run_folder import expand
from launch.agent.wire.host_facts import Disk, FactsRequest, Failed, Gap, Gpu, Gpus

Piece = Tuple[str, Any]  # the name of a fact or a file, and its text or JSON value
Section = Callable[[], Iterator[Piece]]


def pieces(sections: Mapping[str, Section], within_s: float) -> Iterator[Union[Piece, Gap]]:
    """Yield the results of all sections as they arrive, and a ``Gap`` for each failed or late section.

    A section is late if it is not done ``within_s`` seconds after the call.
    """
    until = time.monotonic() + within_s
    found: queue.Queue[Tuple[str, Union[Piece, Gap, None]]] = queue.Queue()
    running = dict.fromkeys(sections)
    for name, section in sections.items():
        threading.Thread(target=_run_section, args=(name, section, found), name=name, daemon=True).start()
    while running:
        try:
            name, piece = found.get(timeout=max(0.0, until - time.monotonic()))
        except queue.Empty:
            yield from (Gap(late, f"not done within {within_s:.0f} s", late=True) for late in running)
            return
        if piece is None:
            del running[name]
        else:
            yield piece


def _run_section(name: str, section: Section, found: "queue.Queue[Tuple[str, Union[Piece, Gap, None]]]") -> None:
    try:
        for piece in section():
            found.put((name, piece))
    except (Unreadable, NoDriverAnswer) as why:
        found.put((name, Gap(name, str(why))))
    except Exception as error:  # the failure of one section must not hide the others
        found.put((name, Gap(name, f"{type(error).__name__}: {error}")))
    finally:
        found.put((name, None))


_QUIET = {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}  # the memory of the GPUs may be full
# Imports print to stderr; each answer is sent at once, since the next import may crash.
_QUESTION = """
import gc, json, os, sys
gc.disable()  # it would look at all of TensorFlow again and again: an eighth of the import
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
def report(name, **values):
    answers.write(json.dumps([name, values]) + "\\n")
    answers.flush()
report("python", version=sys.version.split()[0], path=sys.executable)
def packages():
    for folder in sys.path:
        for entry in os.listdir(folder) if os.path.isdir(folder) else ():
            name, _, version = entry[: -len(".dist-info")].rpartition("-")
            if entry.endswith(".dist-info") and name:
                yield name.replace("_", "-").lower(), version
for name in sys.argv[1:]:
    try:
        if name == "--packages":
            report("packages", **dict(packages()))
            continue
        report(name, version=str(__import__(name).__version__))
    except BaseException as error:
        report(name, error="%s: %s" % (type(error).__name__, error))
"""


class PythonVersions:
    """A process of the tasks' Python that reports the versions of Python and of modules, while the caller continues.

    Args:
      program: runs the Python, in the tasks' container or on this host.
      env: the tasks' own variables.
      modules: the modules to import, in this order.
      packages: whether to return the installed packages, too, as {name: version}. This does not import them.
    """

    def __init__(
        self,
        program: OneShot,
        python: str,
        env: Mapping[str, str],
        modules: Sequence[str] = ("numpy", "tensorflow"),
        packages: bool = False,
    ):
        asked = [*(["--packages"] if packages else []), *modules]
        self._wanted = ["python", *(["packages"] if packages else []), *modules]
        self._failure: Optional[str] = None
        self._program = program
        command = program.command([python, "-c", _QUESTION, *asked], {**env, **_QUIET}, "/")
        try:
            self._process = subprocess.Popen(
                command.argv, env=command.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True, preexec_fn=die_with(os.getpid()),
            )  # fmt: skip
        except OSError as error:
            self._failure = f"cannot start {python}: {os.strerror(error.errno or 0)}"

    def answers(self, timeout_s: float) -> Dict[str, Dict[str, str]]:
        """Return {"python" and each module: {"version", …} or {"error"}, "packages": {name: version}}.

        After ``timeout_s`` the process is killed. The first missing answer is {"error"}; the later ones are left out.
        """
        if self._failure is not None:
            return {"python": {"error": self._failure}}
        try:
            told, errors = self._process.communicate(timeout=timeout_s)
            end = describe_exit(self._process.returncode)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)  # not reaped, so no other process has its pid
            self._program.end()
            told, errors = self._process.communicate()
            end = f"not done within {timeout_s:.0f} s"
        found: Dict[str, Dict[str, str]] = dict(json.loads(line) for line in told.decode().splitlines())
        unanswered = [name for name in self._wanted if name not in found]
        if unanswered:
            found[unanswered[0]] = {"error": _last_line(end, errors.decode(errors="replace").splitlines())}
        return found


def _last_line(end: str, lines: List[str]) -> str:
    return f"{end}: {lines[-1][:200]}" if lines else end


SAMPLE = b"\0" * 65536  # the sample that is written to test a folder
MARGIN_S = 1.0  # for the answers to be sent


def sections(request: FactsRequest, within_s: float) -> Dict[str, Section]:
    """Return {name: section}: the versions, the GPUs, and one section for each folder of the request.

    Their results are fields of ``HostFacts``. The section of the versions ends ``within_s`` seconds after this call.
    """
    until = time.monotonic() + within_s - MARGIN_S

    def disk_of(folder: str) -> Section:
        return lambda: _disk(request, folder)

    return {
        "versions": lambda: _versions(request, until),
        "gpus": lambda: iter([("gpus", to_values(driver_and_gpus()))]),
        **{f"disk {folder}": disk_of(folder) for folder in request.folders},
    }


def _versions(request: FactsRequest, until: float) -> Iterator[Piece]:
    environment = Environment(expand(request.workdir), request.environment) if request.environment else None
    python = str(environment.python) if environment else request.python
    python = python if request.container is None else request.container.python
    modules = ("numpy", "tensorflow") if request.trial else ()
    try:
        program = OneShot("check", request.container, expand(request.workdir))
    except Lacking:  # the container's section reports the reason
        return
    env = on_this_host(request.env, program.outside)
    asked = PythonVersions(program, python, env, modules, packages=not request.trial)
    ready = environment is None or environment.is_ready()
    answers = asked.answers(max(MARGIN_S, until - time.monotonic()))
    yield "versions", {"environment_ready": ready, **answers}


_GPUS = nvidia_smi.question("gpu", "driver_version", "uuid", "name")


def driver_and_gpus() -> Gpus:
    """Return the driver's version, and the GPUs that tasks may use, in the driver's order. Raises NoDriverAnswer."""
    found = nvidia_smi.rows(nvidia_smi.ask(_GPUS))
    users, health = (nvidia_smi.memory(), nvidia_smi.health_of_all()) if found else ([], {})
    gpus = [
        _gpu(row[1:], [user for user in users if user["gpu"] == index], health.get(row[1], Health()))
        for index, row in enumerate(found)
    ]
    usable = allotted([gpu.uuid for gpu in gpus], os.environ)
    return Gpus(found[0][0] if found else None, [gpus[index] for index in usable])


def _gpu(names: Sequence[str], users: Sequence[Mapping[str, Any]], health: Health) -> Gpu:
    """Return a GPU with its users: ``pid 42 (python train.py), 9000 MiB``."""
    processes = [f"pid {user['pid']} ({command_line(user['pid'])[:80]}), {user['mib'] or '?'} MiB" for user in users]
    return Gpu(names[0], names[1], who_holds(names[0]), processes, health.memory_errors, health.slowed)


def _disk(request: FactsRequest, folder: str) -> Iterator[Piece]:
    yield "disks", {folder: to_values(disk(expand(folder), request.trial, request.trial and folder == request.workdir))}


def disk(folder: Path, trial: bool = False, with_locks: bool = False) -> Union[Disk, Failed]:
    """Return the free space of a folder, or of its nearest existing parent; or the error that prevents its use.

    Args:
      trial: whether to test the folder by writing a sample file.
      with_locks: whether the file system must have locks.
    """
    place = next((each for each in (folder, *folder.parents) if each.is_dir()), Path("/"))
    try:
        state = os.statvfs(str(place))
        if trial:
            _write_sample(place, with_locks)
    except file_lock.NoLocks as error:
        return Failed(str(error))
    except OSError as error:
        return Failed(os.strerror(error.errno or 0))
    return Disk(
        is_there=place == folder,
        writable=os.access(str(place), os.W_OK) and not state.f_flag & os.ST_RDONLY,
        bytes=state.f_blocks * state.f_frsize,
        free_bytes=state.f_bavail * state.f_frsize,
        inodes=state.f_files,
        free_inodes=state.f_favail,
    )


def _write_sample(place: Path, with_locks: bool) -> None:
    """Write a file and remove its name. Raises OSError and NoLocks."""
    with tempfile.TemporaryFile(dir=str(place)) as sample:
        sample.write(SAMPLE)
        sample.flush()
        os.fsync(sample.fileno())  # some file systems report only here that they are full
        if with_locks:
            file_lock.lock(sample.fileno(), place / "sample")
