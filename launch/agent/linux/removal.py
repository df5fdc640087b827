"""The removal of a folder that a task has written, even if the task has taken away this user's access to it."""

import contextlib
import os
import shutil
import stat
from pathlib import Path
from typing import Optional


def remove_folder(folder: Path) -> Optional[str]:
    """Remove a folder in which nothing is mounted; return the reason why a part of it remains, or None.

    The function follows no link in the folder.
    """
    _open_up(folder)
    shutil.rmtree(str(folder), ignore_errors=True)
    try:
        shutil.rmtree(str(folder))  # again, for the first error
    except FileNotFoundError:  # fully removed, or another host that shares the folder was faster
        return None
    except OSError as error:
        return f"{error.filename or folder}: {os.strerror(error.errno or 0)}"
    return None


def _open_up(folder: Path) -> None:
    """Give this user write access to every folder, which a task may have removed."""
    _open(str(folder))
    for parent, below, _ in os.walk(str(folder)):
        for name in below:
            _open(os.path.join(parent, name))


def _open(path: str) -> None:
    with contextlib.suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(path, stat.S_IRWXU)
