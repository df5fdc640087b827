"""Open files of a simulated disk: the names of ``os`` that take a path or a handle, and ``open``."""

import itertools
import os
from typing import Any, Dict, NamedTuple, Union

_FLAGS = {
    "r": os.O_RDONLY, "r+": os.O_RDWR, "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
    "x": os.O_WRONLY | os.O_CREAT | os.O_EXCL, "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
}  # fmt: skip


class Open(NamedTuple):
    """An open file, or a folder, which has none."""

    path: str
    file: Any
    flags: int


class Handles:
    """The open files of one disk; of ``os`` it has what is asked of them."""

    def __init__(self, disk: Any):
        self._disk, self._numbers = disk, itertools.count(3)
        self._open: Dict[int, Open] = {}

    def os_open(self, path: str, flags: int, mode: int = 0o777) -> int:
        """Open a file, or a folder, and return its handle. Raises OSError."""
        file = None
        if not flags & os.O_DIRECTORY:
            if flags & os.O_EXCL and self._disk.lexists(path):
                raise FileExistsError(path)
            is_new = flags & os.O_CREAT and not self._disk.lexists(path)
            file = self._disk.make(path) if is_new else self._disk.file(path)
            if flags & os.O_TRUNC and file.data:
                self._disk.put(path, file, b"")
        handle = next(self._numbers)
        self._open[handle] = Open(path, file, flags)
        return handle

    def fdopen(self, handle: int, mode: str = "r", buffering: int = -1) -> "Stream":
        """The file of a handle, to read or write."""
        return Stream(self._disk, handle, self._open[handle], is_text="b" not in mode, is_buffered=buffering != 0)

    def open(self, path: str, mode: str = "r") -> "Stream":
        """Open a file, as the function of Python does. Raises OSError."""
        return self.fdopen(self.os_open(path, _FLAGS[mode.replace("b", "")]), mode)

    def fsync(self, handle: int) -> None:
        """Sync a file, or a folder. Raises OSError."""
        self._disk.flush(self._open[handle].path)

    def fstat(self, handle: int) -> Any:
        """The status of an open file."""
        return self._disk.lstat(self._open[handle].path)

    def close(self, handle: int) -> None:
        """Close it."""
        del self._open[handle]


class Stream:
    """An open file as Python has it; what is written is held back until it is flushed."""

    def __init__(self, disk: Any, handle: int, of: Open, is_text: bool, is_buffered: bool):
        self._disk, self._handle, self._of = disk, handle, of
        self._is_text, self._is_buffered = is_text, is_buffered
        self._at, self._held = 0, b""

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def fileno(self) -> int:
        return self._handle

    def write(self, text: Union[str, bytes]) -> int:
        self._held += text.encode() if isinstance(text, str) else text
        if not self._is_buffered:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Write what is held back, in one piece. Raises OSError."""
        held, self._held = self._held, b""
        if held:
            data = self._of.file.data
            at = len(data) if self._of.flags & os.O_APPEND else self._at
            self._disk.put(self._of.path, self._of.file, data[:at] + held + data[at + len(held) :])
            self._at = at + len(held)

    def truncate(self) -> None:
        """Cut the file off where the last byte was written. Raises OSError."""
        self.flush()
        self._disk.put(self._of.path, self._of.file, self._of.file.data[: self._at])

    def seek(self, at: int) -> None:
        self._at = at

    def read(self, size: int = -1) -> Any:
        data = self._of.file.data[self._at :] if size < 0 else self._of.file.data[self._at : self._at + size]
        self._at += len(data)
        return data.decode() if self._is_text else data

    def close(self) -> None:
        try:
            self.flush()
        finally:
            self._disk.handles.close(self._handle)
