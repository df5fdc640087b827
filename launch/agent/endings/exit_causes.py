"""The kind and the cause of a process's end, and advice where no further attempt can succeed.

    evidence                                        kind
    a limit of memory that the task has reached     ``out-of-memory``
    an outcome                                      the outcome's
    SIGKILL, and the kernel counted a process       ``out-of-memory``
      killed because memory ran out
    SIGABRT, and the log ends with std::bad_alloc   ``out-of-memory``
    another signal                                  ``signal``
    a traceback at the end of the log               the error's kind, else ``exception``
    only an exit code                               ``exit``

A foreign program writes no outcome; ``log_errors`` finds the program's error at the end of its log.

No further attempt can repair these failures:

    failure                                              remedy
    a module is missing                                  install it, or name another Python
    a module, or the program, cannot be imported         correct it
    the shell has not found, or may not run, a program   install it, or write its path into command

A job's task reports the first two failures in its outcome. For a foreign program, the messages of Python and of the
shell decide. The supervisor itself handles the ``retry`` of an outcome, and a process that never started.
"""

import os
import re
import signal
from pathlib import Path
from typing import Callable, List, NamedTuple, Optional, Sequence, Tuple

from cluster.protocol.failure_kinds import EXCEPTION, EXIT, OUT_OF_MEMORY, kind_in_log
from cluster.protocol.outcome import Outcome
from cluster.protocol.shared_files import open_to_read
from launch.agent.endings.log_errors import MOST_JOINED, SEARCHED, Error, error_in
from launch.agent.linux import processes
from launch.agent.text import gpu_note, plain

# Messages of Python at the end of a log, and messages of shells about a program that a shell cannot run.
_PYTHON = re.compile(r"^(?:\S+:\d+: )?(?:ImportError|SyntaxError|IndentationError|TabError): ")
_MODULE = re.compile(r"\bModuleNotFoundError: No module named '([\w.]+)'")
_SHELL = re.compile(r"not found|No such file|Permission denied|cannot execute", re.IGNORECASE)
_NOT_FOUND, _NOT_RUN = 127, 126  # exit codes of a shell
_NEEDED = ("tensorflow", "numpy")
ENVIRONMENT = (
    "let `launch setup` build an environment with this package (key setup), or name a Python with it (key python)"
)
_PACKAGE = "install the module there, add it to the lock of the key setup, or put your own module beside the program"
# A ps finds no file: in the message itself, or by TensorFlow 2 below it, in the line after the remote target.
_NO_FILE = r"(?:No such file or directory|Failed to find any matching files)"
_PS_FILE = re.compile(rf"From /job:ps/.*{_NO_FILE}", re.DOTALL)
_FROM_PS = re.compile(rf"remote target /job:ps/\S* while calling .*\n.*{_NO_FILE}")
_PS_FOLDER = "a ps reads and writes its part of a checkpoint on its own host: name a folder that all hosts share"
_NOT_VALID = "The passed save_path is not a valid checkpoint: "
_NO_VALUES = "its values are not on this host; if a ps of another host wrote them, name a folder that all hosts share"
_PROGRAM = "install the program on this host, or in the image, or write its path into command"


def hopeless_advice(code: int, outcome: Optional[Outcome], error: str, lines: Sequence[str]) -> Optional[str]:
    """Return advice for a failure that no further attempt can repair; None where another attempt may succeed.

    The advice is "" where the cause already contains it.

    Args:
      code: the exit code of the process.
      outcome: the outcome of the task; None where the process wrote none.
      error: the error, or the last line, in the process's log.
      lines: the last lines of that log.
    """
    if code <= 0:
        return None
    if outcome is not None:
        return _advise_on(outcome.missing_module) if outcome.missing_module else None if outcome.retry else ""
    missing = _MODULE.search(error)
    if missing:
        return _advise_on(missing.group(1))
    if _PYTHON.match(error):
        return ""
    return _PROGRAM if code in (_NOT_FOUND, _NOT_RUN) and any(map(_SHELL.search, lines[-3:])) else None


def _advise_on(module: str) -> str:
    top = module.split(".")[0]
    return f"the tasks' Python has no {top}: {ENVIRONMENT if top in _NEEDED else _PACKAGE}"


MOST_LINES, LONGEST = 20, 300  # characters
READ = 65536  # bytes of a log's end: TensorFlow writes thousands of bytes after an error
CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)  # caused by the program itself


class ExitCause(NamedTuple):
    """The end of a failed process.

    Attributes:
      kind: one of ``incident.KINDS``.
      cause: one line that a person can act on.
      error: the error that ended the process, from its outcome or its log; "" where neither has an error.
      retry: whether another attempt may succeed.
    """

    kind: str
    cause: str
    error: str = ""
    retry: bool = True


def judge(code: int, outcome: Optional[Outcome], lines: Sequence[str], no_memory: bool = False) -> ExitCause:
    """Return the kind and the cause of a failed process's end.

    Args:
      code: the process's exit code, negative for a signal.
      outcome: the outcome that the process wrote last; None where the process wrote no outcome.
      lines: the last lines of the process's log.
      no_memory: whether the kernel reports that it killed a process of this host just then, because memory ran out.
    """
    if outcome is not None and outcome.cause:
        kind = outcome.kind or (EXCEPTION if outcome.traceback else EXIT)
        advice = hopeless_advice(code, outcome, "", lines)
        return _add_advice(ExitCause(kind, outcome.cause, outcome.cause), advice)
    found = error_in(lines) if code > 0 or -code in CRASHES else None
    kind, what = _without_outcome(code, found, lines, no_memory)
    last = next((line.strip() for line in reversed(lines) if gpu_note(line) is None), "")
    if found is not None:
        hint = _hint(found.text, lines[-SEARCHED:][found.place :])
        ending = ExitCause(kind, f"{what}; its error: {found.text}{hint}", found.text)
    else:
        ending = ExitCause(kind, f"{what}; its last line: {last}" if last else what)
    return _add_advice(ending, hopeless_advice(code, None, last if found is None else found.text, lines))


def _hint(error: str, lines: Sequence[str]) -> str:
    """Return a hint for an error, after a semicolon; "" where the error needs none.

    Args:
      error: the error as the cause shows it.
      lines: the lines of the log from the error on; only the first ones belong to its message.
    """
    if _PS_FILE.search("\n".join(lines[:MOST_JOINED])) or _FROM_PS.search("\n".join(lines)):
        return f"; {_PS_FOLDER}"
    return f"; {_NO_VALUES}" if _NOT_VALID in error else ""


def _without_outcome(code: int, found: Optional[Error], lines: Sequence[str], no_memory: bool) -> Tuple[str, str]:
    """Return the kind and a description of an end without an outcome."""
    what = processes.describe_exit(code)
    if code == -signal.SIGKILL and no_memory:
        return OUT_OF_MEMORY, "killed by the kernel: out of memory (SIGKILL)"
    if code < 0:
        kinds = [kind_in_log(line) for line in (*lines[-3:], found.text if found else "")]
        return (OUT_OF_MEMORY if OUT_OF_MEMORY in kinds else "signal"), what
    if found is not None and found.raised:
        return kind_in_log(found.text) or EXCEPTION, what
    return EXIT, what


def _add_advice(ending: ExitCause, advice: Optional[str]) -> ExitCause:
    """Return an ending with advice after its cause; advice None means that another attempt may succeed."""
    if advice is None:
        return ending
    return ending._replace(cause=f"{ending.cause}; {advice}" if advice else ending.cause, retry=False)


def last_lines(log: Path, mask: Callable[[str], str] = str, most: int = MOST_LINES) -> List[str]:
    """Return the last non-empty lines of a log, at most ``most``.

    ``mask`` removes the secrets from a line, before the function cuts the line to ``LONGEST`` characters. An unreadable
    log has no lines.
    """
    try:
        with open_to_read(log) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - READ))
            said = [plain(line).rstrip() for line in file.read(READ).decode(errors="replace").split("\n")]
    except OSError:
        return []
    return [mask(line)[:LONGEST] for line in said if line][-most:]
