"""The containers of ``podman`` and ``docker`` by name: which are recorded, which exist, and their removal.

The name proves a container's owner: it contains the run, the task, the attempt, and the pid of the agent. The agent
records the runtime's program and the name of each container before the container starts. The agent removes the record
of a container that is proven gone. ``left`` and the functions below it touch only recorded containers.
"""

import os
import signal
import subprocess
from typing import Collection, Dict, List, NamedTuple, Optional, Sequence

from launch.agent.containers.command import RunContainers
from launch.agent.errors import AgentError
from launch.agent.linux.processes import die_with, environment, table
from launch.agent.state.log import say
from launch.agent.state.process_records import (
    CONTAINER,
    CONTAINERS,
    RecordedContainers,
    contained,
    container_names,
)
from launch.agent.state.run_folder import RunFolder
from launch.agent.text import last_line

ANSWER_S = 20.0  # a runtime that takes longer hangs
_DONE = "."  # no container has this name
_REMOVE = f'"$0" rm --force "$1"; "$0" ps --all --filter "name=$1" --format "{{{{.Names}}}}" && echo {_DONE}'


class NoAnswer(AgentError):
    """The error that the runtime does not work on this host. Its text is the reason."""


class RuntimeResult(NamedTuple):
    """The result of one command of a runtime: the exit code, the output, and the last line of stderr."""

    code: int
    printed: str
    error: str


def ask(program: str, *arguments: str) -> RuntimeResult:
    """Run a command of a runtime, and return its result.

    Raises:
      NoAnswer: the runtime cannot be started, or does not end in time.
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
    """Return the names in ``names`` that belong to an existing container, running or not.

    Raises:
      NoAnswer: the runtime does not answer.
    """
    answer = ask(program, "ps", "--all", "--format", "{{.Names}}")
    if answer.code != 0:
        raise NoAnswer(answer.error or f"{program} ps: exit code {answer.code}")
    there = set(answer.printed.split())
    return [name for name in names if name in there]


def remove(program: str, names: Sequence[str]) -> List[str]:
    """End and remove containers; return the names of those that still exist. Raises NoAnswer."""
    there = existing(program, names)
    if not there:
        return []
    ask(program, "rm", "--force", *there)
    return existing(program, there)


class Removal:
    """The removal of one container by a separate process. Call ``is_proven`` repeatedly until it has a result.

    ``until`` is the time at which the caller gives up, by ``time.monotonic``.
    """

    def __init__(self, program: str, name: str, until: float):
        self.name, self.until = name, until
        self._proven: Optional[bool] = None
        self._process = subprocess.Popen(
            ["sh", "-c", _REMOVE, program, name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True, preexec_fn=die_with(os.getpid()),
        )  # fmt: skip

    @property
    def pid(self) -> int:
        """Return the pid of the removing process, which leads its own process group."""
        return self._process.pid

    def is_proven(self) -> Optional[bool]:
        """Return True if the container is proven gone, False if the removal failed, None while it is running."""
        if self._proven is None and self._process.poll() is not None:
            printed, _ = self._process.communicate()
            listed = printed.decode(errors="replace").split()
            self._proven = listed[-1:] == [_DONE] and self.name not in listed
        return self._proven

    def give_up(self) -> None:
        """Kill the process that removes the container."""
        if self._proven is None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)  # not reaped, so no other process has its pid
            self._process.communicate()


class ContainerRecord:
    """The file that records an agent's containers; only the agent writes it."""

    def __init__(self, folder: RunFolder, container: RunContainers):
        self._folder, self._program = folder, container.program
        self.names: List[str] = container_names(folder)  # an earlier agent may have left some

    def begins(self, name: str) -> None:
        """Record a container before its start. Raises OSError."""
        self.names.append(name)
        self._folder.write(CONTAINERS, self._values())

    def gone(self, name: str) -> None:
        """Remove a container that is proven gone from the record."""
        self.names.remove(name)
        self._folder.note(CONTAINERS, self._values())

    def _values(self) -> Dict[str, object]:
        return {"program": self._program, "names": self.names}


def left(folder: RunFolder) -> List[str]:
    """Return the recorded containers of a run that still exist.

    If the runtime does not answer, the result has all recorded containers, each with the reason.
    """
    names = container_names(folder)
    if not names:
        return []
    try:
        return existing(_program(folder), names)
    except NoAnswer as error:
        return [f"{name} ({error})" for name in names]


def remove_recorded(folder: RunFolder) -> None:
    """End and remove the containers of a run. They stay recorded until ``forget_gone`` finds them gone.

    If a container has no control group, its runtime may leave processes behind. ``forget_gone`` finds them by the
    container's name in their environment.
    """
    names = container_names(folder)
    try:
        if names:
            remove(_program(folder), names)
    except NoAnswer as error:
        say(f"containers cannot be removed: {error}")


def forget_gone(folder: RunFolder) -> None:
    """Remove from the record each container that is proven gone together with all its processes."""
    names = container_names(folder)
    if not names:
        return
    try:
        staying = existing(_program(folder), names)
    except NoAnswer:
        return
    living = {environment(process.pid).get(CONTAINER) for process in contained(folder, table())}
    kept = [each for each in names if each in {*staying, *living}]
    folder.note(CONTAINERS, {"program": _program(folder), "names": kept})


def _program(folder: RunFolder) -> str:
    record = folder.read_record(CONTAINERS, RecordedContainers)
    return "" if record is None else record.program
