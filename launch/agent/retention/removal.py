"""Remove a folder: at once for everybody who looks, and its files afterwards.

First the folder gets another name, which no run and no code has. So no verb ever meets a half of it, also when this
process is killed: the next removal goes on with what is left. Links in it go, and what they lead to stays.
"""

import contextlib
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import List, Optional

REMOVED = ".removed-"


def hide(path: Path) -> Path:
    """Take a folder out of its place, and return where its rest is. Raises OSError."""
    rest = path.with_name(f"{REMOVED}{path.name}-{secrets.token_hex(4)}")
    os.rename(str(path), str(rest))
    return rest


def remainders(parent: Path) -> List[Path]:
    """Return what is left of folders that were taken out of their places."""
    return sorted(parent.glob(f"{REMOVED}*"))


def remove(rest: Path) -> Optional[str]:
    """Remove what is left of a folder; return why something of it stays, None where nothing does."""
    if rest.is_symlink():
        return f"{rest}: expected a folder, found a link"
    _open_up(rest)
    shutil.rmtree(str(rest), ignore_errors=True)
    try:
        shutil.rmtree(str(rest))  # for the first reason
    except FileNotFoundError:  # nothing is left, or another host that shares the folder was faster
        return None
    except OSError as error:
        return f"{error.filename or rest}: {os.strerror(error.errno or 0)}"
    return None


def _open_up(rest: Path) -> None:
    """Let this user write in every folder: a task may have closed some."""
    _open(str(rest))
    for parent, below, _ in os.walk(str(rest)):
        for name in below:
            _open(os.path.join(parent, name))


def _open(path: str) -> None:
    with contextlib.suppress(OSError):
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode) and mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(path, stat.S_IRWXU)
