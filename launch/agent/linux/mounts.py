"""The mounts of this process's file system: also of folders of the same disk, which no file's status shows."""

import os
import re
from pathlib import Path
from typing import List, Optional

TABLE = Path("/proc/self/mountinfo")
LONGEST = 1 << 24  # characters of the table
_POINT = 4  # the field of the folder, in which a space is \040


def mounts_in(folder: Path, table: Optional[Path] = None) -> List[str]:
    """Return the paths at which something is mounted in a folder, or at the folder itself. Raises OSError."""
    whole = os.path.realpath(str(folder))
    with open(str(table or TABLE), errors="surrogateescape") as file:
        lines = file.read(LONGEST).split("\n")
    points = [_unescaped(line.split(" ")[_POINT]) for line in lines if line.count(" ") > _POINT]
    return sorted(point for point in points if point == whole or point.startswith(whole + os.sep))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
