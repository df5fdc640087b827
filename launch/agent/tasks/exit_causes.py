"""The kind and the cause of a process's end, derived from what the process left.

    evidence                                        kind
    an outcome or a traceback of an error that      ``lost-connection``, ``out-of-memory``, ``non-finite``,
      means something                                 ``checkpoint``, and else ``exception``
    SIGKILL, and the kernel counted a process       ``out-of-memory``
      that it killed for want of memory
    SIGABRT, and the log ends with std::bad_alloc   ``out-of-memory``
    another signal                                  ``signal``
    no more than an exit code                       ``exit``

A program that knows nothing of this launcher writes no outcome; ``log_errors`` finds its error at the end of its log.
"""

import os
import re
import signal
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence

from cluster.protocol.outcome import Outcome
from cluster.protocol.regular_file import open_to_read
from launch.agent.linux import processes
from launch.agent.tasks.log_errors import Error, error_in
from launch.agent.text.plain_text import plain

MOST_LINES, LONGEST = 20, 300  # characters
READ = 65536  # bytes of a log's end: TensorFlow writes some thousands after an error
CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)  # of the program's own doing
LOST = ("UnavailableError", "AbortedError", "DeadlineExceededError", "TimeoutError", "ConnectionError",
        "ConnectionResetError", "ConnectionRefusedError", "ConnectionAbortedError", "BrokenPipeError")  # fmt: skip
NO_MEMORY = ("ResourceExhaustedError", "MemoryError")
_NO_MEMORY = re.compile(
    r"\bOOM when allocating\b|CUDA_ERROR_OUT_OF_MEMORY|\bstd::bad_alloc\b|\bCannot allocate memory\b"
)
_CHECKPOINT = re.compile(r"^(?:the final )?checkpoint[ ,]|\bits final checkpoint is not there\b")
_NOT_FINITE = re.compile(r"\bis not a finite number\b")
_ERROR = re.compile(r"^(?:[\w]+\.)*([A-Z]\w*)(?::|$)")  # a traceback's last line, and an outcome's cause


class Ending(NamedTuple):
    """``kind`` is one of ``incident.KINDS``; ``cause`` is one line that a person can act on."""

    kind: str
    cause: str


def judge(code: int, outcome: Optional[Outcome], lines: Sequence[str], no_memory: bool = False) -> Ending:
    """Return the kind and the cause of a failed process's end.

    Args:
      code: the process's exit code, negative for a signal.
      outcome: the outcome that the process wrote last; None where it wrote none.
      lines: the last lines of the process's log.
      no_memory: whether the kernel reports that it killed a process of this host for want of memory just then.
    """
    if outcome is not None and outcome.cause:
        return Ending(_kind_of_error(outcome.cause, "exception" if outcome.traceback else "exit"), outcome.cause)
    error = error_in(lines) if code > 0 or -code in CRASHES else None
    said = _said(error, lines)
    if code == -signal.SIGKILL and no_memory:
        return Ending("out-of-memory", f"killed by the kernel for want of memory (SIGKILL){said}")
    if code < 0:
        starved = any(_NO_MEMORY.search(line) for line in (*lines[-3:], error.text if error else ""))
        return Ending("out-of-memory" if starved else "signal", processes.describe_exit(code) + said)
    kind = _kind_of_error(error.text, "exception") if error is not None and error.raised else "exit"
    return Ending(kind, processes.describe_exit(code) + said)


def _said(error: Optional[Error], lines: Sequence[str]) -> str:
    if error is not None:
        return f"; its error: {error.text}"
    last = lines[-1].strip() if lines else ""
    return f"; its last line: {last}" if last else ""


def _kind_of_error(text: str, otherwise: str) -> str:
    """Return the kind of an error, ``UnavailableError: text`` or only its text.

    An error of no known kind gets ``otherwise``.
    """
    named = _ERROR.match(text)
    name = named.group(1) if named else ""
    if name in NO_MEMORY or _NO_MEMORY.search(text):
        return "out-of-memory"
    if name in LOST:
        return "lost-connection"
    if _CHECKPOINT.search(text):
        return "checkpoint"
    return "non-finite" if _NOT_FINITE.search(text) else otherwise


def last_lines(
    log: Path, mask: Callable[[str], str] = str, most: int = MOST_LINES, longest: int = LONGEST
) -> List[str]:
    """Return the last lines of a log that are not empty, ``most`` at most.

    The function masks each line before it cuts the line to ``longest`` characters. A log that cannot be read has none.
    """
    try:
        with open_to_read(log) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - READ))
            said = [plain(line).rstrip() for line in file.read(READ).decode(errors="replace").split("\n")]
    except OSError:
        return []
    return [mask(line)[:longest] for line in said if line][-most:]
