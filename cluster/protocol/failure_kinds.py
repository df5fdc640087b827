"""The kind of a failure, and the author's own frames in its traceback.

The class of an error of this project determines its kind; a table lists the errors of other programs.

No decision depends on the text of an error of this project. ``FOREIGN`` is the only table with names and words of
errors of other programs: Python, TensorFlow, CUDA, the C++ runtime and the C library.
"""

import os
import re
import traceback
from pathlib import Path
from typing import List, NamedTuple, Optional, Pattern, Sequence, Tuple

from cluster.errors import CheckpointError, ClusterError, NonFiniteError

EXCEPTION, EXIT = "exception", "exit"
OUT_OF_MEMORY, LOST_CONNECTION = "out-of-memory", "lost-connection"
KINDS = {
    EXCEPTION: "an exception of none of the other kinds",
    EXIT: "the task ended without an exception",
    OUT_OF_MEMORY: "no memory was left",
    LOST_CONNECTION: "another task could not be reached",
    CheckpointError.kind: "a checkpoint could not be written or read",
    NonFiniteError.kind: "a loss or a gradient was not a finite number",
}


class Foreign(NamedTuple):
    """A row of ``FOREIGN``: classes, or words, by which errors of one ``origin`` and one ``kind`` are recognized."""

    origin: str
    kind: str
    classes: Tuple[str, ...] = ()
    words: Optional[Pattern[str]] = None

    def fits(self, classes: Sequence[str], text: str) -> bool:
        """Return whether an error of these classes, with this text, belongs to the row."""
        return bool(set(self.classes).intersection(classes) or (self.words and self.words.search(text)))


FOREIGN = (
    Foreign("Python", OUT_OF_MEMORY, ("MemoryError",)),
    Foreign("TensorFlow", OUT_OF_MEMORY, ("ResourceExhaustedError",)),
    Foreign("TensorFlow's allocator", OUT_OF_MEMORY, words=re.compile(r"\bOOM when allocating\b")),
    Foreign("CUDA", OUT_OF_MEMORY, words=re.compile(r"CUDA_ERROR_OUT_OF_MEMORY")),
    Foreign("C++", OUT_OF_MEMORY, words=re.compile(r"\bstd::bad_alloc\b")),
    Foreign("the C library", OUT_OF_MEMORY, words=re.compile(r"\bCannot allocate memory\b")),
    Foreign("TensorFlow", LOST_CONNECTION, ("UnavailableError", "AbortedError", "DeadlineExceededError")),
    Foreign("Python", LOST_CONNECTION, ("TimeoutError", "ConnectionError", "ConnectionResetError",
                                        "ConnectionRefusedError", "ConnectionAbortedError", "BrokenPipeError")),
    Foreign("PyTorch", LOST_CONNECTION, words=re.compile(
        r"\bConnection (?:closed|reset) by peer\b|\bremote process exited or there was a network error\b")),
)  # fmt: skip
_OWN = {error.__name__: error.kind for error in (CheckpointError, NonFiniteError)}
_NAMED = re.compile(r"^(?:\w+\.)*([A-Z]\w*)(?::|$)")  # the last line of a traceback
_CODE = Path(__file__).resolve().parents[2]
# Files that no author of a job writes: Python's, packages, this project's, and what has no file.
_FOREIGN_FILES = (
    os.path.dirname(os.__file__),
    *(str(_CODE / own) for own in ("cluster", "launch", "jobs/main.py", "jobs/describe.py")),
    "<",
)
_FOREIGN_FOLDERS = ("site-packages", "dist-packages", "__autograph_generated")
_MOST_FRAMES = 10  # the innermost ones


def kind_of(error: BaseException) -> str:
    """Return the kind of ``error``, which ends a task.

    The cause of an error of this project counts only if memory ran out. A lost connection as its cause does not count,
    because a job may connect to other programs than tasks.
    """
    if not isinstance(error, ClusterError):
        return foreign_kind(_classes(error), str(error)) or EXCEPTION
    cause = error.__cause__
    starved = cause is not None and foreign_kind(_classes(cause), str(cause)) == OUT_OF_MEMORY
    return error.kind or (OUT_OF_MEMORY if starved else EXCEPTION)


def missing_module(error: BaseException) -> Optional[str]:
    """Return the missing module if ``error``, or the cause of an error of this project, names it; otherwise None."""
    found = error.__cause__ if isinstance(error, ClusterError) else error
    return found.name if isinstance(found, ModuleNotFoundError) else None


def author_frames(error: BaseException) -> List[str]:
    """Return the frames of the author's own files in an error's traceback, as Python prints them, the innermost last.

    In a chain of errors, the outermost error that has such a frame counts.
    """
    found: Optional[BaseException] = error
    while found is not None:
        frames = [each for each in traceback.extract_tb(found.__traceback__) if _is_of_author(each.filename)]
        if frames:
            newest = frames[-_MOST_FRAMES:]
            return [f'  File "{each.filename}", line {each.lineno}, in {each.name}\n    {each.line}' for each in newest]
        found = found.__cause__ or found.__context__
    return []


def _is_of_author(path: str) -> bool:
    return not path.startswith(_FOREIGN_FILES) and not any(folder in path for folder in _FOREIGN_FOLDERS)


def kind_in_log(text: str) -> Optional[str]:
    """Return the kind of an error in a log; None for an unknown error.

    Args:
      text: the class and the text of the error, such as ``UnavailableError: text``, or only its text.
    """
    named = _NAMED.match(text)
    name = named.group(1) if named else ""
    return _OWN.get(name) or foreign_kind([name], text)


def foreign_kind(classes: Sequence[str], text: str) -> Optional[str]:
    """Return the kind of another program's error by the names of its classes and its text; None if unknown."""
    return next((row.kind for row in FOREIGN if row.fits(classes, text)), None)


def _classes(error: BaseException) -> Sequence[str]:
    return [each.__name__ for each in type(error).__mro__]
