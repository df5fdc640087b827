"""Replacing a small file, also on a disk that is full."""

import contextlib
import os
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Gives ``path`` this content: as a whole or not at all, or in place where the disk has no room for a second file.

    Written in place it takes no room as long as it does not grow beyond its blocks, and is read torn by
    who reads at that moment.

    Raises:
      OSError: neither can be done.
    """
    partial = path.with_name(f".{path.name}.partial")
    try:
        partial.write_text(text)
        os.replace(str(partial), str(path))
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink()
        if not path.exists():
            raise
        with open(str(path), "r+") as file:
            file.write(text)
            file.truncate()


def reserve(path: Path, size: int) -> None:
    """Makes room for what ``replace`` is to write at ``path`` later, when the disk may be full. Raises OSError."""
    if not path.exists():
        path.write_text(" " * size)
