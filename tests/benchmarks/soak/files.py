"""The files below a folder, and their sizes, without a list of them: it would count as memory of who looks."""

import os
from pathlib import Path
from typing import Iterable, Iterator, NamedTuple, Sequence


class Sizes(NamedTuple):
    """The number of some files, and their KiB together."""

    number: int
    kib: int


def below(folder: Path, leave_out: Sequence[Path] = ()) -> Iterator[Path]:
    """Yield the regular files below a folder, without the folders to leave out."""
    without = {str(each) for each in leave_out}
    for place, folders, names in os.walk(str(folder)):
        folders[:] = [each for each in folders if os.path.join(place, each) not in without]
        for name in names:
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path


def sizes(paths: Iterable[Path]) -> Sizes:
    """Return the number and the KiB of files."""
    count, total = 0, 0
    for path in paths:
        count, total = count + 1, total + size(path)
    return Sizes(count, total // 1024)


def size(path: Path) -> int:
    """Return the bytes of a file; 0 where it has gone meanwhile."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
