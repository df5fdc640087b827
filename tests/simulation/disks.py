"""The files of a simulated host, its agent's and its tasks', in memory: a real disk takes half of the time."""

import errno
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Union


class Status(NamedTuple):
    """What is asked of a file."""

    st_mtime_ns: int
    st_size: int

    @property
    def st_mtime(self) -> float:
        """Its time, in seconds."""
        return self.st_mtime_ns / 1e9


class Disk:
    """The files of one host by path; they outlast its agent and, once they are synced, its power.

    ``is_full``: it takes nothing more.

    Args:
      clock: the calendar's time, which a file that is written has.
    """

    def __init__(self, clock: Callable[[], float]):
        self._clock, self.is_full = clock, False
        self._texts: Dict[str, str] = {}
        self._written: Dict[str, int] = {}
        self._synced: Dict[str, str] = {}

    def write(self, path: str, text: str, durable: bool = False) -> None:
        """Replace a file. Raises OSError where the disk is full."""
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._texts[path], self._written[path] = text, int(self._clock() * 1e9)
        if durable:
            self._synced[path] = text

    def lose(self, random: Random) -> None:
        """Power is cut: each file is as it was last synced, as it was later, or in pieces."""
        for path, text in list(self._texts.items()):
            synced = self._synced.get(path)
            kept = text if text == synced else random.choice([text, text, synced, ""])
            if kept is None:
                self.unlink(path)
            else:
                self._texts[path] = kept

    def read(self, path: str) -> str:
        """The content of a file. Raises FileNotFoundError."""
        try:
            return self._texts[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    def lstat(self, path: str) -> Status:
        """The status of a file. Raises FileNotFoundError."""
        return Status(self._written[path], len(self.read(path))) if path in self._texts else self._missing(path)

    @staticmethod
    def _missing(path: str) -> Status:
        raise FileNotFoundError(path)

    @property
    def paths(self) -> List[str]:
        """The paths of all files."""
        return list(self._texts)

    def lexists(self, path: str) -> bool:
        """Whether there is such a file."""
        return path in self._texts

    def unlink(self, path: str) -> None:
        """Remove a file. Raises FileNotFoundError."""
        self.read(path)
        del self._texts[path], self._written[path]
        self._synced.pop(path, None)

    # -- in the place of the product's functions

    def read_at_most(self, path: Path, limit: int) -> bytes:
        """Return the content of a file."""
        return self.read(str(path)).encode()

    @contextmanager
    def open_to_append(self, path: Path) -> Iterator[Any]:
        """A log begins, which nobody writes."""
        self.write(str(path), "")
        yield _Opened()

    def open_to_read(self, path: Path) -> Any:
        """There is nothing in a log, and no stacks are written."""
        raise FileNotFoundError(str(path))

    def ask(self, folder: Union[str, Path], number: int, manner: str) -> None:
        """Ask a task to save."""
        self.write(f"{folder}/save", f"{number} {manner}")

    def glob(self, pattern: str) -> List[str]:
        """The files whose paths are like this."""
        return [path for path in self._texts if fnmatchcase(path, pattern)]


class _Opened:
    def fileno(self) -> int:
        return -1
