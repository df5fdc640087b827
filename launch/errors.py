"""Everything that can go wrong on the launcher's side, with its exit code.

    LaunchError
    ├── UsageError      2  the command line or the file is wrong
    ├── CannotStart     3  hosts that cannot take part, every one of them named
    └── Interrupted  128+n a signal ended what was under way

``HostProblem`` is one host's reason; it is collected into a CannotStart, so that the
operator sees all that is wrong, not the first.
"""

import signal
from typing import Sequence

SUCCEEDED, FAILED, USAGE, CANNOT_START, FOUND_WRONG = 0, 1, 2, 3, 4
EXIT_CODES = {
    str(SUCCEEDED): "done; of `up`: the run succeeded",
    str(FAILED): "the run failed; the task that failed first is named",
    str(USAGE): "the command line or the file is wrong; nothing was started",
    str(CANNOT_START): "it could not start: a host is out of reach, a key is unknown, a port is taken; nothing is left",
    str(FOUND_WRONG): "`check`, `down` or `sweep` found something wrong, or left",
    "128+n": "ended by signal n: 130 is Ctrl-C",
}


class LaunchError(Exception):
    """Root of the launcher's errors; ``exit_code`` is the process's."""

    exit_code = FAILED


class UsageError(LaunchError):
    """The command line or the file is wrong; nothing was started."""

    exit_code = USAGE


class HostProblem(LaunchError):
    """One host cannot be reached or cannot do what is asked of it."""

    exit_code = CANNOT_START

    def __init__(self, host: str, reason: str):
        super().__init__(f"{host}: {reason}")
        self.host, self.reason = host, reason


class CannotStart(LaunchError):
    """The run could not start; names every host and reason, then gives ``advice``. Nothing is left of it."""

    exit_code = CANNOT_START

    def __init__(self, problems: Sequence[HostProblem], advice: str = ""):
        super().__init__("\n".join([*map(str, problems), *([advice] if advice else [])]))
        self.problems = tuple(problems)


class Interrupted(LaunchError):
    """A signal came while hosts were being prepared."""

    def __init__(self, number: int):
        super().__init__(f"interrupted by {signal.Signals(number).name}")
        self.exit_code = 128 + number
