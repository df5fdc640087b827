"""A lock on a file that its holders may remove. It goes with the process that holds it."""

import fcntl
import os
from pathlib import Path


class Held(Exception):
    """Somebody else holds the lock; the text is what the file says."""


def take(path: Path, kind: int = fcntl.LOCK_EX) -> int:
    """Locks the file, which is made if it is not there; returns its handle, and closing that lets go.

    Args:
      kind: ``fcntl.LOCK_EX`` for one holder, ``fcntl.LOCK_SH`` for one among many.

    Raises:
      Held: somebody else has it.
    """
    while True:
        handle = os.open(str(path), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            said = os.read(handle, 1000).decode()
            os.close(handle)
            raise Held(said) from None
        if _is_there(path, handle):
            return handle
        os.close(handle)


def _is_there(path: Path, handle: int) -> bool:
    """Whether the file is still the one: its former holder may have removed it between our open and our lock."""
    try:
        return os.stat(str(path)).st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False
