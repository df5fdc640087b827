"""Small files and folders, as in ``/proc``, that may be gone, or another user's: then there is nothing in them."""

import os
from pathlib import Path
from typing import List

LONGEST = 1 << 20  # characters


def text_of(path: Path) -> str:
    """Return the text of a file, ``LONGEST`` characters at most; "" where it is unreadable."""
    try:
        with open(str(path), errors="replace") as file:
            return file.read(LONGEST)
    except OSError:
        return ""


def names_in(folder: Path) -> List[str]:
    """Return the names in a folder; none where the folder cannot be read."""
    try:
        return os.listdir(str(folder))
    except OSError:
        return []
