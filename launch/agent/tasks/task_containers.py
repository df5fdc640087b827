"""The containers of this host's tasks, attempt after attempt, from before their start until they are proven gone."""

import os
import time
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Set

from launch.agent.containers import command
from launch.agent.containers.command import Command, Inside, RunContainers
from launch.agent.containers.control import Removal
from launch.agent.state.containers import RECORD, ContainerRecord
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.attempt import Attempt
from launch.agent.tasks.task_env import outside

GONE_S = 15.0  # for a container to be gone, before its task ends without this proof


class _Ending(NamedTuple):
    """The removal of a container, and the end of the patience with it."""

    removal: Removal
    until: float


class TaskContainers:
    """The containers of one host's tasks; ``container`` is None where tasks run on the host itself."""

    def __init__(self, folder: RunFolder, container: Optional[RunContainers]):
        self._folder, self._container = folder, container
        self._record = ContainerRecord(folder, container) if container and container.is_named else None
        self._made = 0
        self._endings: Dict[str, _Ending] = {}
        self._stay: Set[str] = set()

    def name(self, task: str, attempt: int) -> Optional[str]:
        """Return a name for an attempt's container, which no other has; None where it has no container."""
        if self._container is None:
            return None
        self._made += 1
        return f"launch.{self._folder.run}.{task.replace(':', '.')}.{attempt}.{os.getpid()}.{self._made}"

    def command(self, name: Optional[str], argv: Sequence[str], env: Mapping[str, str], folder: str,
                has_gpus: bool = False, reads: bool = False, nofile: Optional[int] = None) -> Command:  # fmt: skip
        """Return the command of an attempt, whose container is recorded from now on.

        Args:
          name: that of the container; None for no container.
          env: the variables of the task.

        Raises:
          OSError: the container cannot be recorded.
        """
        if self._container is None or name is None:
            return Command(list(argv), {**outside(), **env})
        if self._record is not None:
            self._record.begins(name)
        inside = Inside(name=name, argv=argv, env=env, folder=folder, has_gpus=has_gpus, reads=reads, nofile=nofile)
        return command.command(self._container, inside, outside())

    def is_gone(self, attempt: Attempt) -> bool:
        """Return whether an ended attempt has no container any more; remove the container meanwhile.

        A container that stays for ``GONE_S`` counts as gone. It stays in the record, and ``down`` reports it.
        """
        self.remove(attempt)
        self.look()
        return attempt.container not in self._endings

    def remove(self, attempt: Attempt) -> None:
        """Begin to remove an attempt's container, unless that has begun, or the container is gone."""
        name = attempt.container
        if self._record is not None and name in self._record.names and not {name} & {*self._endings, *self._stay}:
            self._begin(name, time.monotonic() + GONE_S)

    def _begin(self, name: str, until: float) -> None:
        if self._container is None:
            return
        try:
            self._endings[name] = _Ending(Removal(self._container.program, name), until)
        except OSError as error:
            self._give_up(name, os.strerror(error.errno or 0))

    def _give_up(self, name: str, why: str) -> None:
        say(f"container {name} cannot be removed, and stays in {self._folder.own / RECORD}: {why}")
        self._stay.add(name)

    def look(self) -> None:
        """Note the containers that are proven gone, and try again where one is not."""
        for name, ending in list(self._endings.items()):
            proven = ending.removal.is_proven()
            if proven is None and time.monotonic() <= ending.until:
                continue
            del self._endings[name]
            if proven and self._record is not None:
                self._record.gone(name)
            elif time.monotonic() <= ending.until:
                self._begin(name, ending.until)
            else:
                ending.removal.give_up()
                self._give_up(name, f"it is still there after {GONE_S:.0f} s")

    @property
    def pids(self) -> List[int]:
        """Return the pids of the processes that remove containers."""
        return [ending.removal.pid for ending in self._endings.values()]
