"""The working folders of tasks, which are copies of the job's folder; and the launcher's own code.

    HOME/work/                      the working folder of a program under ``command:``, or of a job with its ``job.py``
    HOME/work.json                  the copied files, {name: modification time in ns}
    RUN/ROLE.INDEX/work             for a job with ``folder: run`` a link to the folder of the host

The key ``folder`` decides what HOME is. With ``task``, HOME is RUN/ROLE.INDEX: each task of each run has a separate
copy. With ``run``, HOME is RUN/hosts/HOST: the tasks of a host share one copy, as on an author's own machine. All
attempts of a task share a copy, so a restarted task finds the files of the earlier attempt. When the run has ended on
the host, the agent removes the unchanged copies; the files that the tasks wrote stay.

All runs share the folder of the launcher's code, from which a cleanup by age may remove files. So the agent keeps the
code in memory as long as it may start a task. It restores missing or changed files, and renews the times of the run's
files.
"""

import contextlib
import ctypes
import fcntl
import json
import marshal
import os
import shutil
import time
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence

from cluster.protocol.outcome import WORK
from cluster.protocol.settings import RUN_FOLDER
from cluster.protocol.shared_files import replace_file
from launch.agent.linux.procfs import names_in
from launch.agent.state.log import say_once
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest

LIST = "work.json"
MANIFEST = ".manifest"  # the list of shipped files; bootstrap.py, which imports none of our modules, repeats this name
_libc = ctypes.CDLL(None)
_OMIT, _HERE, _NO_LINKS = (1 << 30) - 2, -100, 0x100  # UTIME_OMIT, AT_FDCWD and AT_SYMLINK_NOFOLLOW of Linux
_CLONE = 0x40049409  # FICLONE of Linux: both files share their blocks until one of the files is written


def homes(request: RunRequest, folder: RunFolder) -> List[Path]:
    """Return the folders that contain this host's working folders, without duplicates."""
    return list(dict.fromkeys(folder.home(request.folder, task.name) for task in request.tasks))


def create(request: RunRequest, folder: RunFolder, shipped: Optional[Path]) -> None:
    """Create the working folders of this host's tasks, with copies of the shipped files.

    A job is started in the folder of the launcher's code, and finds its working folder in its task's folder.

    Raises:
      OSError: a folder cannot be created; the error names it.
    """
    for each in homes(request, folder):
        fill(each, shipped)
    for task in request.tasks if request.folder == RUN_FOLDER else ():
        if Path(task.folder) != folder.own / WORK:
            _link(folder.task(task.name), folder.own)


def _link(task: Path, home: Path) -> None:
    task.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileExistsError):  # an earlier agent of this run has made it
        os.symlink(os.path.relpath(str(home / WORK), str(task)), str(task / WORK))


def fill(home: Path, shipped: Optional[Path]) -> None:
    """Create the working folder in ``home``, and copy the files of the folder ``shipped`` into it, once.

    Without ``shipped``, the working folder is empty.
    Existing files stay unchanged: a restarted agent continues with the existing folder.

    Raises:
      OSError: the folder cannot be created.
    """
    if (home / LIST).exists():
        return
    (home / WORK).mkdir(mode=0o700, parents=True, exist_ok=True)
    times: Dict[str, int] = {}
    for name in _names(shipped) if shipped is not None else ():
        if not os.path.lexists(str(home / WORK / name)):
            times[name] = _copy(Path(str(shipped), name), home / WORK / name, home / ".copy")
    replace_file(home / LIST, json.dumps(times))


def unchanged(home: Path) -> List[str]:
    """Return the copied files in ``home`` that no task has changed, as paths relative to the working folder."""
    return [name for name, time_ns in _times(home).items() if _is_of(home / WORK / name, time_ns)]


def _is_of(path: Path, time_ns: int) -> bool:
    """Return whether a file was last modified at a time, in ns."""
    try:
        return os.lstat(str(path)).st_mtime_ns == time_ns
    except OSError:
        return False


def tidy(home: Path) -> None:
    """Remove the copied files that no task has changed, and then the empty folders."""
    times = _times(home)
    for name in unchanged(home):
        with contextlib.suppress(OSError):
            os.unlink(str(home / WORK / name))
    for name in sorted({os.path.dirname(name) for name in times} | {""}, reverse=True):
        with contextlib.suppress(OSError):  # the folder is not empty
            os.removedirs(str(home / WORK / name))
    with contextlib.suppress(OSError):
        (home / LIST).unlink()


def tidy_all(request: RunRequest, folder: RunFolder) -> None:
    """Remove the unchanged copies of a run on this host, and the links to folders that are then gone."""
    for each in homes(request, folder):
        tidy(each)
    for task in request.tasks:
        path = str(folder.task(task.name) / WORK)
        if os.path.islink(path) and not os.path.exists(path):
            with contextlib.suppress(OSError):
                os.unlink(path)


class _Time(ctypes.Structure):
    """A ``struct timespec`` of Linux."""

    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


def touch(home: Path, now: float) -> None:
    """Renew the access times of the copied files, so that no cleanup by age removes them.

    ``os.utime`` would also set the modification times, by which ``tidy`` decides which files no task has changed.
    """
    times = (_Time * 2)(_Time(int(now), 0), _Time(0, _OMIT))
    for name in _times(home):
        _libc.utimensat(_HERE, os.fsencode(str(home / WORK / name)), times, _NO_LINKS)


def _names(shipped: Path) -> Iterator[str]:
    for folder, below, names in os.walk(str(shipped)):
        below[:] = [name for name in below if name != "__pycache__"]
        yield from (os.path.relpath(os.path.join(folder, name), str(shipped)) for name in names if name != MANIFEST)


def _copy(source: Path, target: Path, partial: Path) -> int:
    """Copy a file atomically; return its modification time."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(str(source), "rb") as read, open(str(partial), "wb") as written:
        try:
            fcntl.ioctl(written.fileno(), _CLONE, read.fileno())
        except OSError:  # most file systems do not support clones
            shutil.copyfileobj(read, written, 1 << 20)
        os.fchmod(written.fileno(), os.fstat(read.fileno()).st_mode & 0o700)
    os.rename(str(partial), str(target))
    return os.stat(str(target)).st_mtime_ns


def _times(home: Path) -> Dict[str, int]:
    """Return the copied files and their modification times, {name: ns}.

    The result is empty where a task has replaced the list by something else.
    """
    try:
        times = json.loads((home / LIST).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    listed = times.items() if isinstance(times, dict) else ()
    return {name: time_ns for name, time_ns in listed if isinstance(time_ns, int) and _is_below(name)}


def _is_below(name: str) -> bool:
    return os.path.normpath(name) == name and not os.path.isabs(name) and name.split(os.sep)[0] != os.pardir


LOOK_S = 3600.0
_HEAD = 16  # bytes of bytecode before the code
OLD_S = 24 * 3600.0  # once a day at most: Python recompiles a file with a new time


class _File(NamedTuple):
    mode: int
    content: bytes


class Shipped:
    """The launcher's code in ``folder``, which the constructor reads into memory.

    Args:
      own: this host's folder of the run.
      homes: the folders that contain the working folders of the agent's tasks.

    Raises:
      OSError, ValueError: the code cannot be read.
    """

    def __init__(self, folder: Path, own: Path, homes: Sequence[Path]):
        self._folder, self._own, self._homes, self._look_at = folder, own, homes, 0.0
        self._complete: Dict[str, int] = {}  # bytecode that is complete, with its time
        manifest = json.loads((folder / MANIFEST).read_text())
        modes = {**{name: sent[0] for name, sent in manifest.items()}, MANIFEST: 0o600}
        self._files = {f"{folder}/{name}": _File(mode, _read(f"{folder}/{name}")) for name, mode in modes.items()}

    def restore(self) -> None:
        """Restore missing or changed files of the code. A failure is logged once, and does not end the run."""
        self._drop_cut_bytecode()
        for path, file in self._files.items():
            if not _has(path, file.content):
                try:
                    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
                    _write(Path(path), file)
                except OSError as error:
                    say_once(f"cannot restore {path}: {os.strerror(error.errno or 0)}")

    def _drop_cut_bytecode(self) -> None:
        """Remove new bytecode that a full disk has cut short: a restarted task could not import it."""
        for parent, _, names in os.walk(str(self._folder)):
            for path in (os.path.join(parent, name) for name in names if name.endswith(".pyc")):
                with contextlib.suppress(OSError):
                    written = os.stat(path).st_mtime_ns
                    if self._complete.get(path) != written and not _is_whole(_read(path)):
                        os.unlink(path)
                    self._complete[path] = written

    def look(self, now: float) -> None:
        """Once an hour, restore the code, and renew the times of the code's and the run's files.

        ``now`` is the time by the agent's clock.
        """
        if now >= self._look_at:
            self._look_at = now + LOOK_S
            self.restore()
            for path in (*self._files, *(f"{self._own}/{name}" for name in names_in(self._own))):
                _freshen(path)
            for home in self._homes:
                touch(home, time.time())


def _is_whole(bytecode: bytes) -> bool:
    """Return whether bytecode is complete; True for another Python's, which this Python cannot read."""
    if bytecode[:4] != MAGIC_NUMBER:
        return True
    try:
        marshal.loads(bytecode[_HEAD:])
    except (EOFError, ValueError, TypeError):
        return False
    return True


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _has(path: str, content: bytes) -> bool:
    try:
        return _read(path) == content
    except OSError:
        return False


def _write(path: Path, file: _File) -> None:
    """Write a file atomically."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(str(partial), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, file.mode)
    with os.fdopen(handle, "wb") as written:
        written.write(file.content)
    os.replace(str(partial), str(path))


def _freshen(path: str) -> None:
    with contextlib.suppress(OSError):
        if time.time() - os.stat(path).st_mtime > OLD_S:
            os.utime(path)
