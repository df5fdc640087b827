"""Containers of ``podman`` and ``docker`` by their names: whether they exist, and their removal.

The name is proof of a container's owner: it has the run, the task, the attempt, and the pid of the agent.
"""

import os
import signal
import subprocess
from typing import Collection, List, NamedTuple, Optional, Sequence

from launch.agent.errors import AgentError
from launch.agent.linux.processes import die_with
from launch.agent.text import last_line

ANSWER_S = 20.0  # a runtime that takes longer hangs
_DONE = "."  # is no name
_REMOVE = f'"$0" rm --force "$1"; "$0" ps --all --filter "name=$1" --format "{{{{.Names}}}}" && echo {_DONE}'


class NoAnswer(AgentError):
    """The runtime does not work here; the text is the reason."""


class RuntimeResult(NamedTuple):
    """The end of one command of a runtime."""

    code: int
    printed: str
    error: str


def ask(program: str, *arguments: str) -> RuntimeResult:
    """Return what a runtime answers.

    Raises:
      NoAnswer: it cannot be started, or does not end in time.
    """
    try:
        ended = subprocess.run(
            [program, *arguments], stdin=subprocess.DEVNULL, capture_output=True, timeout=ANSWER_S,
        )  # fmt: skip
    except OSError as error:
        raise NoAnswer(f"cannot start {program}: {os.strerror(error.errno or 0)}") from error
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"{program} does not answer within {ANSWER_S:.0f} s") from None
    return RuntimeResult(ended.returncode, ended.stdout.decode(errors="replace"), last_line(ended.stderr))


def existing(program: str, names: Collection[str]) -> List[str]:
    """Return the names for which a container exists, running or not.

    Raises:
      NoAnswer: the runtime does not answer.
    """
    answer = ask(program, "ps", "--all", "--format", "{{.Names}}")
    if answer.code != 0:
        raise NoAnswer(answer.error or f"{program} ps: exit code {answer.code}")
    there = set(answer.printed.split())
    return [name for name in names if name in there]


def remove(program: str, names: Sequence[str]) -> List[str]:
    """End and remove containers; return those that still exist. Raises NoAnswer."""
    there = existing(program, names)
    if not there:
        return []
    ask(program, "rm", "--force", *there)
    return existing(program, there)


class Removal:
    """The removal of one container, which goes on beside this process's other work. Call ``is_proven`` often."""

    def __init__(self, program: str, name: str):
        self.name = name
        self._proven: Optional[bool] = None
        self._process = subprocess.Popen(
            ["sh", "-c", _REMOVE, program, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with(os.getpid()),
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """Return the pid of the process that removes it, which leads a group of its own."""
        return self._process.pid

    def is_proven(self) -> Optional[bool]:
        """Return whether the container is proven gone; None while that is not known."""
        if self._proven is None and self._process.poll() is not None:
            printed, _ = self._process.communicate()
            listed = printed.decode(errors="replace").split()
            self._proven = listed[-1:] == [_DONE] and self.name not in listed
        return self._proven

    def give_up(self) -> None:
        """End the process that removes it."""
        if self._proven is None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # not reaped, so the number is still its own
            self._process.communicate()
