"""Everything that can go wrong on the launcher's side, with its exit code.

    LaunchError
    ├── UsageError      2  the command line or the file is wrong
    ├── CannotStart     3  hosts that cannot take part, every one of them named
    └── Interrupted  128+n a signal ended what was under way

``HostProblem`` is one host's reason. A CannotStart collects the reasons of all hosts, so that the operator sees
all that is wrong, not the first. Code decides by the ``ProblemKind`` of a ``HostProblem``:

    HostProblem         3  one host's
    ├── the way there      unreachable, unknown-name, host-key, authentication, sshd, gateway
    ├── what is there      python-missing, python-old, python-ended, folder, disk
    ├── its answers        slow, silent, noise, broken, refused
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
    str(
        CANNOT_START
    ): "The run could not start, for example because a host is out of reach or a port is taken. Nothing is left.",
    str(
        FOUND_WRONG
    ): "`check`, `down` or `sweep` found a problem or leftovers, or `prune` could not remove everything.",
    "128+n": "Signal n ended the command; 130 is Ctrl-C. 143 also: a host left, so `up` saved and stopped the run.",
}


class LaunchError(Exception):
    """Root of the launcher's errors; ``exit_code`` is the process's."""

    exit_code = FAILED


class UsageError(LaunchError):
    """The command line or the file is wrong; nothing was started."""

    exit_code = USAGE


class ProblemKind(enum.Enum):
    """The kind of a host's problem.

    The values go over the wire: the agent's answers name some of them.
    """

    UNREACHABLE = "unreachable"  # nobody answers at its address, or no way leads there
    UNKNOWN_NAME = "unknown-name"  # this machine has no address for it
    HOST_KEY = "host-key"  # its key is not the known one, or none is known
    AUTHENTICATION = "authentication"  # it refuses our keys
    SSHD = "sshd"  # its sshd drops logins, or opens no session or forward
    GATEWAY = "gateway"  # the gateways before it lead in a circle
    NO_PYTHON = "python-missing"  # the Python that the file names is not there
    OLD_PYTHON = "python-old"  # the agent's code does not run on that Python
    PYTHON_ENDED = "python-ended"  # that Python ended before it answered
    FOLDER = "folder"  # another user could decide what runs in the working folder
    DISK = "disk"  # the working folder cannot be written
    SLOW = "slow"  # its part was not done by the deadline
    SILENT = "silent"  # a program there was asked, and has not answered in time
    NOISE = "noise"  # what came is no answer of ours
    BROKEN = "broken"  # the connection broke, or ended too early
    REFUSED = "refused"  # its agent says why it does not do what was asked
    UNNAMED = "unnamed"  # it takes part in a run, and the file does not name it
    HERE = "here"  # this machine lacks what it needs: a key file, a variable, a port


class HostProblem(LaunchError):
    """One host cannot be reached or cannot do what is asked of it.

    Attributes:
      what: the fact.
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
        """Return the problem in a host's answer {"error"}, which may name its "kind" and "advice".

        Args:
          failed: words for what has failed, in front of the host's own.
        """
        known = {kind.value: kind for kind in ProblemKind}
        kind = known.get(str(answer.get("kind")), ProblemKind.REFUSED)
        return cls(host, kind, f"{failed}{answer['error']}", advice=str(answer.get("advice") or ""))

    @property
    def reason(self) -> str:
        """Return the sentence without the host's name."""
        return f"{self.what}; {self.advice}" if self.advice else self.what

    def with_advice(self, further: str) -> "HostProblem":
        """Return this problem with more to know behind its advice."""
        advice = "; ".join(filter(None, [self.advice, further]))
        return HostProblem(self.host, self.kind, self.what, advice=advice)


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
