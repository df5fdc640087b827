"""The launcher's errors, with their exit codes.

    LaunchError
    ├── UsageError      2  the command line or the file is wrong
    ├── RunFailed       1  a run that ``Run.wait`` followed has failed, or was stopped
    ├── CannotStart     3  hosts cannot take part; the error names each of them
    ├── FoundWrong      4  ``Run.down`` has found leftovers, or hosts out of reach
    └── Interrupted  128+n signal n ended the work in progress

``HostProblem`` is the problem of one host. A CannotStart collects the problems of all hosts, so that the operator sees
every problem, not only the first. Code decides by the ``ProblemKind`` of a ``HostProblem``:

    HostProblem         3  the problem of one host
    ├── its connection     unreachable, unknown-name, host-key, authentication, sshd, gateway
    ├── its software       python-missing, python-old, python-ended, folder, disk
    ├── its answers        slow, silent, noise, broken, ended, refused
    └── elsewhere          unnamed (in the hosts file), here (on this machine)
"""

import enum
import signal
from typing import Any, Mapping, Sequence

SUCCEEDED, FAILED, USAGE, CANNOT_START, FOUND_WRONG = 0, 1, 2, 3, 4
EXIT_CODES = {
    str(SUCCEEDED): "Success. For `up`: the run succeeded.",
    str(FAILED): "The run failed. The message names the task that failed first.",
    str(USAGE): "The command line or the file is wrong. Nothing was started.",
    str(CANNOT_START): (
        "The run could not start, for example because a host is out of reach or a port is taken."
        " Hosts where anything is left are named."
    ),
    str(
        FOUND_WRONG
    ): "`check`, `down` or `sweep` found a problem or leftovers, or `prune` could not remove everything.",
    "128+n": "Signal n ended the command; 130 is Ctrl-C. 143 also: a host left, so `up` saved and stopped the run.",
}


class LaunchError(Exception):
    """Root of the launcher's errors; ``exit_code`` is the exit code of the process."""

    exit_code = FAILED


class UsageError(LaunchError):
    """The command line or the file is wrong; nothing was started."""

    exit_code = USAGE


class RunFailed(LaunchError):
    """A run did not succeed; the text has its cause.

    Attributes:
      run: full name of the run.
      state: failed or stopped.
    """

    def __init__(self, run: str, state: str, cause: str):
        super().__init__(f"{run} {state}: {cause}")
        self.run, self.state, self.cause = run, state, cause


class FoundWrong(LaunchError):
    """A run has left something on its hosts, or a host cannot be asked; the text has a line for each host."""

    exit_code = FOUND_WRONG


class ProblemKind(enum.Enum):
    """The kind of a host's problem.

    The values are part of the protocol: the agent's answers contain some of them.
    """

    UNREACHABLE = "unreachable"  # no answer from its address, or no route to it
    UNKNOWN_NAME = "unknown-name"  # this machine has no address for it
    HOST_KEY = "host-key"  # its key differs from the known key, or no key is known
    AUTHENTICATION = "authentication"  # the host refuses the operator's keys
    SSHD = "sshd"  # its sshd drops logins or does not answer them, or opens no session or forward
    GATEWAY = "gateway"  # the gateways before the host form a circle
    NO_PYTHON = "python-missing"  # the Python that the file names does not exist
    OLD_PYTHON = "python-old"  # the agent's code does not run on that Python
    PYTHON_ENDED = "python-ended"  # that Python ended before its answer
    FOLDER = "folder"  # another user could decide what runs in the working folder
    DISK = "disk"  # the working folder cannot be written
    SLOW = "slow"  # the host's part was not done by the deadline
    SILENT = "silent"  # a program on the host did not answer in time
    NOISE = "noise"  # the received bytes are no valid answer
    BROKEN = "broken"  # the connection broke, or ended too early
    ENDED = "ended"  # a user has ended the run that this one would succeed
    REFUSED = "refused"  # its agent refuses the request, with a reason
    UNNAMED = "unnamed"  # the host takes part in a run, but is not in the file
    HERE = "here"  # this machine lacks a key file, a variable, a port, or the like


class HostProblem(LaunchError):
    """The problem of one host: the host is out of reach, or cannot do its part.

    Attributes:
      what: the fact, in words.
      advice: the next step, or a question that leads to it; "" for none.
    """

    exit_code = CANNOT_START

    def __init__(self, host: str, kind: ProblemKind, what: str, advice: str = ""):
        self.host, self.kind, self.what, self.advice = host, kind, what, advice
        super().__init__(f"{host}: {self.reason}")

    @classmethod
    def here(cls, what: str, advice: str = "") -> "HostProblem":
        """Return a problem of this machine."""
        return cls("this machine", ProblemKind.HERE, what, advice)

    @classmethod
    def reported(cls, host: str, answer: Mapping[str, Any], failed: str = "") -> "HostProblem":
        """Return the problem in a host's answer {"error"}, which may also have "kind" and "advice".

        Args:
          failed: a text about the failed action; it precedes the host's own text.
        """
        known = {kind.value: kind for kind in ProblemKind}
        kind = known.get(str(answer.get("kind")), ProblemKind.REFUSED)
        return cls(host, kind, f"{failed}{answer['error']}", advice=str(answer.get("advice") or ""))

    @property
    def reason(self) -> str:
        """Return the fact and the advice in one sentence, without the host's name."""
        return f"{self.what}; {self.advice}" if self.advice else self.what

    def with_advice(self, further: str) -> "HostProblem":
        """Return this problem with ``further`` appended to its advice."""
        advice = "; ".join(filter(None, [self.advice, further]))
        return HostProblem(self.host, self.kind, self.what, advice=advice)


class CannotStart(LaunchError):
    """The run could not start; the text has each host's reason, then ``advice``.

    Each host on which something of the start may be left has a line, too.
    """

    exit_code = CANNOT_START

    def __init__(self, problems: Sequence[HostProblem], advice: str = ""):
        super().__init__("\n".join([*map(str, problems), *([advice] if advice else [])]))
        self.problems = tuple(problems)


class Interrupted(LaunchError):
    """A signal came during the work on hosts; the text also names hosts on which something may be left."""

    def __init__(self, number: int, problems: Sequence[HostProblem] = ()):
        super().__init__("\n".join([f"interrupted by {signal.Signals(number).name}", *map(str, problems)]))
        self.exit_code = 128 + number
