"""The folder for temporary files of an attempt: TMPDIR of the attempt's processes, removed with the attempt.

    RUN/ROLE.INDEX/attempt_N.tmp        a link to the folder
    /tmp/launch-1a2b3c4d                the folder, where this host keeps temporary files

A killed program cannot remove its temporary files. The folder has a short path, since the path of a Unix socket in it
has at most 107 bytes. The link is made first, so each folder that exists is on record.
"""

import contextlib
import os
import re
import secrets
import stat
import tempfile
import threading
from pathlib import Path
from typing import Iterator, List, Optional

from launch.agent.linux.procfs import mounts_in
from launch.agent.linux.removal import remove_folder
from launch.agent.state import plan_file
from launch.agent.state.log import say_once
from launch.agent.state.run_folder import RunFolder

LONGEST = 70  # characters of a path that leaves room for the names of programs' sockets
_NAME = re.compile(r"launch-[0-9a-f]{8}")


def make(task: Path, attempt: int) -> Optional[str]:
    """Make the folder of an attempt, and return its path; None where the path would be too long, or the disk is full.

    ``task`` is the folder of the task.
    """
    link = _link(task, attempt)
    try:
        path = os.path.join(tempfile.gettempdir(), f"launch-{secrets.token_hex(4)}")
        if len(path) > LONGEST:
            return None
        remove(link)
        os.symlink(path, str(link))
        os.mkdir(path, 0o700)
    except OSError as error:
        say_once(f"no folder for temporary files of {task.name}: {os.strerror(error.errno or 0)}")
        return None
    return path


def freshen(task: Path) -> None:
    """Renew the timestamps of a task's temporary folders: systemd removes folders that are days old."""
    for link in task.glob("attempt_*.tmp"):
        path = _target(link)
        if path is not None:
            with contextlib.suppress(OSError):
                os.utime(path, follow_symlinks=False)


def forget(task: Path, attempt: int) -> None:
    """Remove the folder of an ended attempt, in a separate thread: the folder may have many files.

    Where this process ends before the thread, the keeper of this process removes the remaining files.
    """
    threading.Thread(target=remove, args=(_link(task, attempt),), daemon=True, name="temporary files").start()


def remove(link: Path) -> None:
    """Remove the folder that a link of ``make`` names, and then the link; log a folder that cannot be removed."""
    path = _target(link)
    if path is None or _is_mounted(path):
        return
    if remove_folder(Path(path)) is not None or os.path.lexists(path):
        say_once(f"cannot remove {path}")
        return
    if _target(link) == path:  # not that of a next attempt with this number
        with contextlib.suppress(FileNotFoundError):
            os.unlink(str(link))


def _is_mounted(path: str) -> bool:
    """Return whether something is mounted, or may be, in a folder: the removal of the folder would empty it."""
    try:
        mounted = mounts_in(Path(path))
    except OSError as error:
        say_once(f"cannot remove {path}: {error}")
        return True
    if mounted:
        say_once(f"cannot remove {path}: {mounted[0]} is a mount")
    return bool(mounted)


def left(folder: RunFolder) -> List[str]:
    """Return the folders for temporary files of a run's tasks on this host that still exist."""
    return [path for path in map(_target, _links(folder)) if path is not None and os.path.lexists(path)]


def remove_left(folder: RunFolder) -> None:
    """Remove the folders for temporary files of a run's tasks on this host, after the tasks have ended."""
    for link in _links(folder):
        remove(link)


def _links(folder: RunFolder) -> Iterator[Path]:
    for task in plan_file.read(folder).names:  # not those of other hosts that share the folder
        yield from folder.task(task).glob("attempt_*.tmp")


def _link(task: Path, attempt: int) -> Path:
    return task / f"attempt_{attempt}.tmp"


def _target(link: Path) -> Optional[str]:
    """Return the path that a link names, if ``make`` may have made it for this user; else None."""
    try:
        path = os.readlink(str(link))
    except OSError:
        return None
    with contextlib.suppress(FileNotFoundError):
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
            return None
    return path if _NAME.fullmatch(os.path.basename(path)) else None
