"""Small files and folders, as in ``/proc``, that may be gone, or another user's: then there is nothing in them."""

import os
from pathlib import Path
from typing import List

LONGEST = 1 << 20  # characters


def text_of(path: Path) -> str:
    """What a file says, ``LONGEST`` at most; nothing where it cannot be read."""
    try:
        with open(str(path), errors="replace") as file:
            return file.read(LONGEST)
    except OSError:
        return ""


def names_in(folder: Path) -> List[str]:
    """What is in a folder; nothing where it cannot be read."""
    try:
        return os.listdir(str(folder))
    except OSError:
        return []
