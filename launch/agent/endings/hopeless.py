"""Failures that no further attempt mends, with advice for each.

    what is there                                        what to do
    a module is missing                                  install it, or name another Python
    a module, or the program, cannot be imported         mend it
    the shell has not found, or may not run, a program   install it, or write its path into command

A task of ours reports the first two in its outcome. Of a program of others the words of Python and of the shell
decide. The supervisor judges the ``retry`` of an outcome, and a process that never started.
"""

import re
from typing import Optional, Sequence

from cluster.protocol.outcome import Outcome

# Foreign words: Python's at the end of a log, and those of the shells for a program that they cannot run.
_PYTHON = re.compile(r"^(?:\S+:\d+: )?(?:ImportError|SyntaxError|IndentationError|TabError): ")
_MODULE = re.compile(r"\bModuleNotFoundError: No module named '([\w.]+)'")
_SHELL = re.compile(r"not found|No such file|Permission denied|cannot execute", re.IGNORECASE)
_NOT_FOUND, _NOT_RUN = 127, 126  # exit codes of a shell
_NEEDED = ("tensorflow", "numpy")
_ENVIRONMENT = (
    "let `launch setup` build an environment that has it (key setup), or name a Python that has it (key python)"
)
_PACKAGE = "install it there, add it to the lock of the key setup, or put your own module beside the program"
_PROGRAM = "install the program on this host, or in the image, or write its path into command"


def judge(code: int, outcome: Optional[Outcome], error: str, lines: Sequence[str]) -> Optional[str]:
    """Return advice for a hopeless failure; None where another attempt may end otherwise.

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
    return f"the tasks' Python has no {top}: {_ENVIRONMENT if top in _NEEDED else _PACKAGE}"
