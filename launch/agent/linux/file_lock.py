"""A lock on a file. A holder may remove the file. The kernel releases the lock when the holder's process ends."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Optional

from launch.agent.errors import AgentError

_NONE = (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP)  # Lustre without -o flock, NFS without its lock daemon, FUSE
_LONGEST = 1000  # bytes of a holder's text in the file


class LockHeld(AgentError):
    """The error that another process holds the lock. Its text is the content of the locked file."""


class NoLocks(AgentError):
    """The error that the file system has no locks. Its text gives the reason and advice."""


def take(path: Path, kind: int = fcntl.LOCK_EX) -> int:
    """Lock the file ``path``, and create it if it is missing; return its file descriptor.

    Closing the descriptor releases the lock.

    Args:
      kind: ``fcntl.LOCK_EX`` for a single holder; ``fcntl.LOCK_SH`` if several processes may hold the lock together.

    Raises:
      LockHeld: another process holds the lock.
      NoLocks: the file system has no locks.
    """
    while True:
        handle = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            lock(handle, path, kind)
            if _is_there(path, handle):
                return handle
        except BlockingIOError:
            said = os.read(handle, _LONGEST).decode()
            os.close(handle)
            raise LockHeld(said) from None
        except NoLocks:
            path.unlink()
            os.close(handle)
            raise
        os.close(handle)


def lock(handle: int, path: Path, kind: int = fcntl.LOCK_EX) -> None:
    """Lock an open file.

    Raises:
      BlockingIOError: another process holds the lock.
      NoLocks: the file system of ``path`` has no locks.
    """
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _NONE:
            raise
        why = f"flock: {os.strerror(error.errno or 0)}"
        advice = (
            "set the key workdir to a folder on a local disk, or mount the file system with locks (Lustre: -o flock)"
        )
        raise NoLocks(
            f"{path.parent}: expected a file system with locks, found one without ({why}); {advice}"
        ) from None


def held_by(path: Path) -> Optional[str]:
    """Return the text that the holder wrote into the locked file; None if no process holds the lock."""
    try:
        handle = os.open(str(path), os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        lock(handle, path)
    except BlockingIOError:
        return os.read(handle, _LONGEST).decode()
    except NoLocks:
        return None
    finally:
        os.close(handle)
    return None


def _is_there(path: Path, handle: int) -> bool:
    """Return whether the locked file is still the file at ``path``.

    The former holder may have removed the file between our open and our lock.
    """
    try:
        return os.stat(str(path)).st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False
