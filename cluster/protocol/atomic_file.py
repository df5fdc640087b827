"""Replacing a small file, also on a disk that is full."""

import contextlib
import os
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Replace the content of ``path``, as a whole or not at all.

    Where the disk has no room for a second file, the function writes in place. Then the file takes no room as long as
    it does not grow beyond its blocks. A program that reads at that moment may read torn text.

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
    """Reserve ``size`` bytes at ``path`` for ``replace`` on a full disk later. Raises OSError."""
    if not path.exists():
        path.write_text(" " * size)
