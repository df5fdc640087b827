"""The disk of a simulated host, in memory, and what a power cut leaves of its files.

What is written is lost with the power until its file is synced, and a new name until its folder is. Of a file that is
not synced the disk may have all, a part, zeros, or nothing; of a new name the file before it.
"""

import errno
import os
import stat
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Union

from tests.simulation.handles import Handles
from tests.simulation.paths import paths_on

PERMISSIONS = 0o600


class Status(NamedTuple):
    """What is asked of a file."""

    st_mtime_ns: int
    st_size: int
    st_mode: int = stat.S_IFREG | PERMISSIONS

    @property
    def st_mtime(self) -> float:
        """Its time, in seconds."""
        return self.st_mtime_ns / 1e9


class File:
    """What a name stands for: its content, and as much of that as a power cut leaves for certain, if anything."""

    __slots__ = ("data", "synced", "written")

    def __init__(self, written: int, data: bytes = b"", synced: Optional[bytes] = None):
        self.written, self.data, self.synced = written, data, synced


class Disk:
    """The files of one host by path; they outlast its agent and, once they are synced, its power.

    ``is_full``: it takes nothing more. ``changes`` counts what agents have changed; before the change of a number in
    ``due``, what is there happens, which may raise. So may ``before``, which sees the kind of each change and its path.

    Args:
      clock: the calendar's time, which a file that is written has.
    """

    def __init__(self, clock: Callable[[], float]):
        self._clock, self.is_full = clock, False
        self.folders: Set[str] = set()  # those that agents have made
        self.changes = 0
        self.due: Dict[int, Callable[[], None]] = {}
        self.before: Callable[[str, str], None] = lambda kind, path: None
        self._names: Dict[str, File] = {}
        self._first: Dict[str, bytes] = {}  # of each file that an agent has replaced, what it had at first
        self._durable: Dict[str, File] = {}  # what names stand for after a power cut
        self.path = paths_on(self)
        self.handles = Handles(self)

    # -- what a task, or the world, does

    def write(self, path: Union[str, Path], data: Union[str, bytes], durable: bool = False) -> None:
        """Replace a file. Raises OSError where the disk is full."""
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        content = data.encode() if isinstance(data, str) else data
        self._names[str(path)] = File(self._now(), content)
        if durable:
            self.sync(str(path))
            self.sync(os.path.dirname(str(path)))

    def lose(self, random: Random, is_torn: bool) -> None:
        """Power is cut; with ``is_torn``, files may also be in pieces."""
        for path, file in list(self._names.items()):
            before = self._durable.get(path)
            if before is not None and before.synced == file.data:
                continue
            left = self._left(file, before, random if is_torn else None)
            kept = random.choice(left)
            if kept is None:
                del self._names[path]
            else:
                self._names[path] = File(file.written, kept, kept)
        self._durable = dict(self._names)

    @staticmethod
    def _left(file: File, before: Optional[File], torn: Optional[Random]) -> List[Optional[bytes]]:
        """What may be left of a file that has been changed since it was synced."""
        old = None if before is None else before.data if before.synced is None else before.synced
        if file.synced == file.data:  # it is there whole, but perhaps not under its name yet
            return [file.data, old]
        pieces = [] if torn is None else [file.data[: torn.randrange(len(file.data) + 1)], bytes(len(file.data))]
        return [file.data, file.data, old, b"", *pieces]

    def names(self, pattern: str = "*") -> List[str]:
        """The paths of files that are like this."""
        return [path for path in self._names if fnmatchcase(path, pattern)]

    def is_folder(self, path: str) -> bool:
        """Whether there is such a folder: it was made, or has a file."""
        return path in self.folders or any(each.startswith(f"{path}/") for each in self._names)

    def first(self, path: str) -> bytes:
        """The first content of a file."""
        return self._first.get(path, self.read(path))

    # -- what anybody asks

    def read(self, path: Union[str, Path]) -> bytes:
        """The content of a file. Raises FileNotFoundError."""
        return self.file(str(path)).data

    def file(self, path: str) -> File:
        """What a name stands for. Raises FileNotFoundError."""
        try:
            return self._names[path]
        except KeyError:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None

    def lstat(self, path: Union[str, Path]) -> Status:
        """The status of a file. Raises FileNotFoundError."""
        file = self.file(str(path))
        return Status(file.written, len(file.data))

    def lexists(self, path: Union[str, Path]) -> bool:
        """Whether there is such a file."""
        return str(path) in self._names

    # -- what an agent changes: each of it may fail

    def change(self, kind: str, path: str, grows: bool = False) -> None:
        """Count a change, and let happen what is due before it. Raises OSError."""
        self.changes += 1
        self.before(kind, path)
        happen = self.due.pop(self.changes, None)
        if happen is not None:
            happen()
        if grows and self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def make(self, path: str) -> File:
        """Make an empty file, with a new name. Raises OSError."""
        self.change("make", path, grows=True)
        return self._names.setdefault(path, File(self._now()))

    def put(self, path: str, file: File, data: bytes) -> None:
        """Change the content of a file. Raises OSError."""
        self.change("put", path, grows=len(data) > len(file.data))
        file.data, file.written = data, self._now()

    def flush(self, path: str) -> None:
        """Sync a file, or the names in a folder, for an agent. Raises OSError."""
        self.change("sync", path)
        self.sync(path)

    def sync(self, path: str) -> None:
        """Let a power cut leave a file, or the names in a folder, as they are."""
        if path in self._names:
            self._names[path].synced = self._names[path].data
            return
        of_folder = [name for name in {**self._names, **self._durable} if os.path.dirname(name) == path]
        for name in of_folder:
            if name in self._names:
                self._durable[name] = self._names[name]
            else:
                del self._durable[name]

    def replace(self, old: str, new: str) -> None:
        """Give a file another name, which may be another's. Raises OSError."""
        self.change("replace", new)
        file = self.file(old)
        if new in self._names:
            self._first.setdefault(new, self._names[new].data)
        del self._names[old]
        self._names[new] = file

    def unlink(self, path: Union[str, Path]) -> None:
        """Remove a file. Raises FileNotFoundError."""
        self.file(str(path))
        self.change("unlink", str(path))
        del self._names[str(path)]

    def make_folder(self, path: str) -> None:
        """Make a folder, and those above it. Raises OSError."""
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self.folders.add(path)

    def forget(self, path: str) -> None:
        """Remove a file, if it is there; nothing fails."""
        self._names.pop(path, None)

    def _now(self) -> int:
        return int(self._clock() * 1e9)
