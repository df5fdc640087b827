"""The kind of a failure. Our errors have a kind by their class; a table lists the errors of other programs.

No decision depends on the text of an error of ours. ``FOREIGN`` is the only table of names and words of others: Python,
TensorFlow, CUDA, the C++ runtime and the C library.
"""

import re
from typing import NamedTuple, Optional, Pattern, Sequence, Tuple

from cluster.errors import CheckpointError, ClusterError, NonFiniteError

EXCEPTION, EXIT = "exception", "exit"
OUT_OF_MEMORY, LOST_CONNECTION = "out-of-memory", "lost-connection"
KINDS = {
    EXCEPTION: "an exception of no kind below",
    EXIT: "the task ended without an exception",
    OUT_OF_MEMORY: "no memory was left",
    LOST_CONNECTION: "another task could not be reached",
    CheckpointError.kind: "a checkpoint could not be written or read",
    NonFiniteError.kind: "a loss or a gradient was not a finite number",
}


class Foreign(NamedTuple):
    """A row of ``FOREIGN``: the classes, or the words, that identify errors of one origin."""

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


def kind_of(error: BaseException) -> str:
    """Return the kind of the error that ends a task.

    The cause of an error of ours counts only where memory ran out. A job may connect to other programs itself, and a
    connection that it loses is not a lost task.
    """
    if not isinstance(error, ClusterError):
        return foreign_kind(_classes(error), str(error)) or EXCEPTION
    cause = error.__cause__
    starved = cause is not None and foreign_kind(_classes(cause), str(cause)) == OUT_OF_MEMORY
    return error.kind or (OUT_OF_MEMORY if starved else EXCEPTION)


def missing_module(error: BaseException) -> Optional[str]:
    """Return the module that this Python lacks, if an error, or the cause of an error of ours, names that module."""
    found = error.__cause__ if isinstance(error, ClusterError) else error
    return found.name if isinstance(found, ModuleNotFoundError) else None


def kind_in_log(text: str) -> Optional[str]:
    """Return the kind of an error in a log, ``UnavailableError: text`` or only its text; None for an unknown error."""
    named = _NAMED.match(text)
    name = named.group(1) if named else ""
    return _OWN.get(name) or foreign_kind([name], text)


def foreign_kind(classes: Sequence[str], text: str) -> Optional[str]:
    """Return the kind of another program's error by the names of its classes and its text; None if unknown."""
    return next((row.kind for row in FOREIGN if row.fits(classes, text)), None)


def _classes(error: BaseException) -> Sequence[str]:
    return [each.__name__ for each in type(error).__mro__]
