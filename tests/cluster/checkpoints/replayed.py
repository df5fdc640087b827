"""A disk whose operations have results of before: the code that uses it runs again, up to the next operation."""

import os
from typing import Any, Sequence, Tuple

Result = Tuple[str, Any]  # of an operation: "done" and its value, or "error" and the exception's number


class Pause(BaseException):
    """An operation has no result yet; ``args`` describe it."""


class Replay:
    """The disk of one chief: it returns the results of the operations so far, and pauses at the next one."""

    def __init__(self) -> None:
        self.results: Sequence[Result] = ()
        self.at = 0
        self.handles = self

    def begin(self, results: Sequence[Result]) -> None:
        self.results, self.at = results, 0

    def perform(self, what: str, path: Any, more: Any = None) -> Any:
        if self.at == len(self.results):
            raise Pause(what, os.path.basename(str(path)), more)
        kind, value = self.results[self.at]
        self.at += 1
        if kind == "error":
            raise FileNotFoundError(value, "") if value == 2 else OSError(value, "")
        return value

    def read(self, path: str) -> bytes:
        return str(self.perform("read", path)).encode()

    def lexists(self, path: str) -> bool:
        return bool(self.perform("exists", path))

    def is_folder(self, path: str) -> bool:
        return os.path.dirname(path) == "/"

    def unlink(self, path: str) -> None:
        self.perform("unlink", path)

    def replace(self, old: str, new: str) -> None:
        self.perform("replace", old, os.path.basename(new))

    def open(self, path: str, mode: str) -> "Opened":
        return Opened(self, self.perform("create" if mode == "w" else "open", path))


class Opened:
    """A file that a chief writes: text is held back until the file is cut off or closed."""

    def __init__(self, replay: Replay, file: int):
        self._replay, self._file, self._held, self._size = replay, file, "", 0

    def __enter__(self) -> "Opened":
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        if kind is None:
            self._flush()

    def write(self, text: str) -> int:
        self._held, self._size = text, len(text)
        return len(text)

    def _flush(self) -> None:
        held, self._held = self._held, ""
        if held:
            self._replay.perform("write", "", (self._file, held))

    def truncate(self) -> None:
        self._flush()
        self._replay.perform("cut", "", (self._file, self._size))
