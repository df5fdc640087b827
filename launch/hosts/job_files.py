"""The files of a job's folder that are sent to every host, including the targets of links.

A file that cannot be sent is an error, so that no file is missing silently.
"""

import itertools
import os
import stat
from pathlib import Path
from typing import Dict, Iterator, List, NoReturn, Optional, Tuple

from launch.errors import UsageError

LIMIT_MIB = 64
MOST = 10_000  # files and folders
DEEPEST = 64  # levels of nested folders
_SKIPPED = ("__pycache__", "node_modules")
APART = "move the job into a folder of its own, and data to where the hosts read it"


class JobFiles:
    """The files of the folder ``root`` to send; after ``find``, ``sizes`` is {file: bytes}.

    Caches, environments, names that begin with a dot, and sockets are left out. ``workdir``, the folder for the files
    of runs on this machine, is left out too.
    """

    def __init__(self, root: Path, workdir: Optional[Path] = None):
        self._root, self._workdir = root, workdir
        self._seen = 0
        self.sizes: Dict[Path, int] = {}

    def find(self) -> "JobFiles":
        """Find the files, and record their sizes.

        Raises:
          UsageError: a file cannot be sent, or the files are too many or too large.
        """
        # Each folder with its parent folders, as devices and inodes, because a link may lead back to a parent.
        waiting: List[Tuple[Path, Tuple[Tuple[int, int], ...]]] = [(self._root, ())]
        while waiting:
            folder, above = waiting.pop()
            for path in self._inside(folder):
                status = _status(path)
                if stat.S_ISDIR(status.st_mode):
                    here = _status(folder)
                    way = (*above, (here.st_dev, here.st_ino))
                    _refuse_circle(path, (status.st_dev, status.st_ino) in way, len(way))
                    waiting += [] if self._is_apart(path) else [(path, way)]
                elif stat.S_ISREG(status.st_mode):
                    self.sizes[path] = status.st_size
                elif not stat.S_ISSOCK(status.st_mode):
                    kind = "a pipe" if stat.S_ISFIFO(status.st_mode) else "a device"
                    _refuse(path, "files and folders", kind, f"remove it, or {APART}")
        self._check_size()
        return self

    def _inside(self, folder: Path) -> Iterator[Path]:
        try:
            with os.scandir(str(folder)) as entries:
                names = [entry.name for entry in itertools.islice(entries, MOST - self._seen + 1)]
        except OSError as error:
            _refuse_unreadable(folder, error)
        self._seen += len(names)
        if self._seen > MOST:
            found = f"more, the last ones in {folder}"
            raise UsageError(
                f"job: the folder {self._root} is shipped to every host; expected at most {MOST:,} files and folders, "
                f"found {found}; {APART}"
            )
        return (folder / name for name in sorted(names) if _is_wanted(name))

    def _is_apart(self, folder: Path) -> bool:
        return os.path.exists(str(folder / "pyvenv.cfg")) or folder.resolve() == self._workdir

    def _check_size(self) -> None:
        total = sum(self.sizes.values())
        if total > LIMIT_MIB << 20:
            path = max(self.sizes, key=lambda each: self.sizes[each])
            raise UsageError(
                f"job: the folder {self._root} is shipped to every host; expected at most {LIMIT_MIB} MiB, "
                f"found {total >> 20} MiB, {self.sizes[path] >> 20} of them in {path}; {APART}"
            )


def content_of(path: Path) -> bytes:
    """Return the content of a file to send.

    Raises:
      UsageError: the file cannot be read.
    """
    try:
        with open(str(path), "rb") as file:
            return file.read(LIMIT_MIB << 20)
    except OSError as error:
        _refuse_unreadable(path, error)


def _refuse_circle(path: Path, is_one: bool, depth: int) -> None:
    if is_one:
        _refuse(path, "a link to a file or to another folder", "one to a folder that contains it", "remove it")
    if depth > DEEPEST:
        _refuse(path, f"folders at most {DEEPEST} deep", "a deeper one", APART)


def _is_wanted(name: str) -> bool:
    return not name.startswith(".") and name not in _SKIPPED and not name.endswith((".pyc", ".egg-info"))


def _status(path: Path) -> os.stat_result:
    try:
        return os.stat(str(path))
    except OSError as error:
        if os.path.islink(str(path)) and isinstance(error, FileNotFoundError):
            _refuse(path, "an intact link", f"one to {os.readlink(str(path))}, which does not exist", "remove it")
        _refuse_unreadable(path, error)


def _refuse(path: Path, expected: str, found: str, step: str) -> NoReturn:
    raise UsageError(
        f"job: {path} is in a folder that is shipped to every host; expected {expected}, found {found}; {step}"
    )


def _refuse_unreadable(path: Path, error: OSError) -> NoReturn:
    why = os.strerror(error.errno or 0).lower()
    _refuse(path, "read access", why, f"change its permissions, or {APART}")
