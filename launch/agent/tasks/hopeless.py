"""Failures that no further attempt mends, recognised by what a task left, with advice for each.

    what is there                                        what to do
    a module is missing                                  install it, or name another Python
    a module, or the program, cannot be imported         mend it
    the shell has not found, or may not run, a program   install it, or write its path into command

The supervisor judges the ``retry`` of an outcome, and a process that never started.
"""

import re
from typing import Optional, Sequence

_ERROR = re.compile(
    r"^(?:exit code 1; its (?:error|last line): )?(?:\S+:\d+: )?(ImportError|SyntaxError|IndentationError|TabError): "
)
_MODULE = re.compile(r"\bModuleNotFoundError: No module named '([\w.]+)'")
_NOT_FOUND, _NOT_RUN = 127, 126  # exit codes of a shell
_NO_PROGRAM = re.compile(r"not found|No such file|Permission denied|cannot execute", re.IGNORECASE)
_NEEDED = ("tensorflow", "numpy")
_ENVIRONMENT = (
    "let `launch setup` build an environment that has it (key setup), or name a Python that has it (key python)"
)
_PACKAGE = "install it there, add it to the lock of the key setup, or put your own module beside the program"


def judge(code: int, cause: str, lines: Sequence[str]) -> Optional[str]:
    """Return advice for a hopeless failure; None where another attempt may end otherwise.

    The advice is "" where the cause already contains it.

    Args:
      code: the exit code of the process.
      cause: why the process ended, in one line.
      lines: the last lines of the process's log.
    """
    missing = _MODULE.search(cause) if code > 0 else None
    if missing:
        module = missing.group(1).split(".")[0]
        return f"the tasks' Python has no {module}: {_ENVIRONMENT if module in _NEEDED else _PACKAGE}"
    if code > 0 and _ERROR.match(cause):
        return ""
    if code in (_NOT_FOUND, _NOT_RUN) and any(_NO_PROGRAM.search(line) for line in lines[-3:]):
        return "install the program on this host, or write its path into command"
    return None
