"""The folder that a task works in: a copy of the job's folder which is no other task's and no other run's.

    RUN/ROLE.INDEX/work/            where a program under ``command:`` starts, and whose ``job.py`` a job is
    RUN/ROLE.INDEX/work.json        what was copied there, {name: modification time in ns}

All attempts of a task share it, so that one that is started again finds what the one before wrote. Once
the host's part of the run is over, the copies that nobody changed are removed, and what the task wrote stays.
"""

import contextlib
import fcntl
import json
import os
import shutil
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from cluster.protocol.outcome import WORK
from cluster.protocol.shared_files import replace_file

LIST = "work.json"
MANIFEST = ".manifest"  # of what was shipped; bootstrap.py, which imports nothing of ours, has it too
_CLONE = 0x40049409  # FICLONE of Linux: both files share their blocks until one of them is written


def fill(task: Path, shipped: Optional[Path]) -> None:
    """Make the task's folder from the shipped one, unless that is done; it is empty where nothing was shipped.

    What lies there already stays as it is: an agent that is started again goes on with it.

    Raises:
      OSError: it cannot be made.
    """
    if (task / LIST).exists():
        return
    (task / WORK).mkdir(mode=0o700, parents=True, exist_ok=True)
    times: Dict[str, int] = {}
    for name in _names(shipped) if shipped is not None else ():
        if not os.path.lexists(str(task / WORK / name)):
            times[name] = _copy(Path(str(shipped), name), task / WORK / name, task / ".copy")
    replace_file(task / LIST, json.dumps(times))


def unchanged(task: Path) -> List[str]:
    """Return the names of the copies that nobody has changed, below the task's working folder."""
    return [name for name, time in _times(task).items() if _is_of(task / WORK / name, time)]


def _is_of(path: Path, time: int) -> bool:
    """Return whether a file was last modified at a time, in ns."""
    try:
        return os.lstat(str(path)).st_mtime_ns == time
    except OSError:
        return False


def tidy(task: Path) -> None:
    """Remove the unchanged copies, and the folders that this leaves empty."""
    times = _times(task)
    for name in unchanged(task):
        with contextlib.suppress(OSError):
            os.unlink(str(task / WORK / name))
    for name in sorted({os.path.dirname(name) for name in times} | {""}, reverse=True):
        with contextlib.suppress(OSError):  # it is not empty
            os.removedirs(str(task / WORK / name))
    with contextlib.suppress(OSError):
        (task / LIST).unlink()


def touch(task: Path, now: float) -> None:
    """Renew the access times of the copies, so that a cleanup by age keeps them."""
    for name, time in _times(task).items():
        with contextlib.suppress(OSError):
            os.utime(str(task / WORK / name), ns=(int(now * 1e9), time))


def _names(shipped: Path) -> Iterator[str]:
    for folder, below, names in os.walk(str(shipped)):
        below[:] = [name for name in below if name != "__pycache__"]
        yield from (os.path.relpath(os.path.join(folder, name), str(shipped)) for name in names if name != MANIFEST)


def _copy(source: Path, target: Path, partial: Path) -> int:
    """Copy a file, which appears whole or not at all; return its modification time."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(str(source), "rb") as read, open(str(partial), "wb") as written:
        try:
            fcntl.ioctl(written.fileno(), _CLONE, read.fileno())
        except OSError:  # most file systems cannot
            shutil.copyfileobj(read, written, 1 << 20)
        os.fchmod(written.fileno(), os.fstat(read.fileno()).st_mode & 0o700)
    os.rename(str(partial), str(target))
    return os.stat(str(target)).st_mtime_ns


def _times(task: Path) -> Dict[str, int]:
    """Return the copied files and their modification times, {name: ns}.

    The result is empty where the task has made something else of the list.
    """
    try:
        times = json.loads((task / LIST).read_text())
    except (OSError, ValueError, RecursionError):
        return {}
    listed = times.items() if isinstance(times, dict) else ()
    return {name: time for name, time in listed if isinstance(time, int) and _is_below(name)}


def _is_below(name: str) -> bool:
    return os.path.normpath(name) == name and not os.path.isabs(name) and name.split(os.sep)[0] != os.pardir
