"""The size of a run's folder, its last use, and whether the folder has results. No function follows links."""

import os
import re
import stat
from pathlib import Path
from typing import Iterator, NamedTuple, Optional, Set, Tuple

from cluster.protocol.flight_records import FILE as SPANS
from cluster.protocol.outcome import WORK
from cluster.protocol.save_request import HOLD
from cluster.protocol.standby import READY
from launch.agent.linux.procfs import mounts_in
from launch.agent.tasks import attempt, work_folder

BLOCK = 512  # bytes of a block in a file's status, on any disk
_RECORDS = {*attempt.FILES, SPANS, HOLD, READY, work_folder.LIST}
_RECORD = re.compile(r"attempt_\d+\..*|\..*")  # a log, its index, or the remainder of an interrupted file replacement
HOSTS = "hosts"


class MeasuredFolder(NamedTuple):
    """The measured properties of a run's folder.

    Attributes:
      bytes: the disk space of the folder. A file with n names (hard links) counts 1/n of its size for each name; a
        resumed run makes links to an earlier run's checkpoint.
      used_at: the newest modification time in the folder, in seconds since 1970.
      has_results: whether the folder has more than logs and records.
      mount: a path in the folder at which something is mounted, or a subfolder on another disk; None without one. Files
        are not checked, because the files of an overlay may have another device number than its folders.
    """

    bytes: int
    used_at: float
    has_results: bool
    mount: Optional[str]


def measure(folder: Path) -> MeasuredFolder:
    """Measure a run's folder. Raises OSError for a missing folder."""
    root = os.lstat(str(folder))
    size, used_at, has_results = 0.0, root.st_mtime, False
    mount = next(iter(mounts_in(folder)), None)
    copies: Set[str] = set()
    for path, status in _everything(folder):
        used_at = max(used_at, status.st_mtime)
        if stat.S_ISDIR(status.st_mode):
            if status.st_dev != root.st_dev:  # also without a mount: a subvolume of btrfs
                mount = mount or str(folder / path)
            if _has_work(path):
                copies |= {f"{path}/{WORK}/{name}" for name in work_folder.unchanged(folder / path)}
            continue
        size += status.st_blocks * BLOCK / max(1, status.st_nlink)
        is_link = stat.S_ISLNK(status.st_mode) and _is_work(path)
        has_results = has_results or not (is_link or _is_record(path) or path in copies)
    return MeasuredFolder(int(size), used_at, has_results, mount)


def _everything(folder: Path) -> Iterator[Tuple[str, os.stat_result]]:
    """Yield every path below a folder, relative to the folder, with its own status; a folder precedes its contents."""
    for parent, below, names in os.walk(str(folder)):
        for name in (*below, *names):
            path = os.path.join(parent, name)
            try:
                yield os.path.relpath(path, str(folder)), os.lstat(path)
            except OSError:  # removed meanwhile
                continue


def _has_work(path: str) -> bool:
    """Return whether a folder of a run is a task's own or a host's own, which may have a working folder."""
    parts = path.split(os.sep)
    return len(parts) == (2 if parts[0] == HOSTS else 1)


def _is_work(path: str) -> bool:
    """Return whether a path is that of a task's working folder, which may be a link to the host's."""
    return os.path.basename(path) == WORK and _has_work(os.path.dirname(path))


def _is_record(path: str) -> bool:
    """Return whether a file of a run is one that agents or tasks write in every run."""
    parts = path.split(os.sep)
    if parts[0] == HOSTS:
        return len(parts) <= 3
    return len(parts) == 2 and (parts[1] in _RECORDS or bool(_RECORD.fullmatch(parts[1])))
