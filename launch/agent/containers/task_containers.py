"""The containers of this host's tasks: one for each attempt, from before its start until it is proven gone.

``OneShot`` is a similar container, for a program that this process runs once and waits for.
"""

import os
import secrets
import time
from pathlib import Path
from typing import Dict, List, Mapping, Optional, Sequence, Set

from cluster.protocol.settings import Container
from launch.agent.containers import command, control, runtimes
from launch.agent.containers.command import Command, Inside, RunContainers
from launch.agent.containers.control import ContainerRecord, Removal
from launch.agent.state.log import say
from launch.agent.state.process_records import CONTAINERS
from launch.agent.state.run_folder import RunFolder

GONE_S = 15.0  # for the removal of a container, before its task ends without proof


class TaskContainers:
    """The containers of one host's tasks; ``container`` is None where tasks run on the host itself."""

    def __init__(self, folder: RunFolder, container: Optional[RunContainers]):
        self._folder, self._container = folder, container
        self._record = ContainerRecord(folder, container) if container and container.is_named else None
        self._made = 0
        self._removals: Dict[str, Removal] = {}
        self._stay: Set[str] = set()

    def name(self, task: str, attempt: int) -> Optional[str]:
        """Return a unique name for an attempt's container; None where the attempt has no container."""
        if self._container is None:
            return None
        self._made += 1
        return f"launch.{self._folder.run}.{task.replace(':', '.')}.{attempt}.{os.getpid()}.{self._made}"

    @property
    def outside(self) -> Dict[str, str]:
        """Return the variables that a task inherits: this process's, or none in a container.

        The variables of an image are not known here.
        """
        return command.outside() if self._container is None else {}

    def command(self, inside: Inside) -> Command:
        """Return the command of an attempt, and record the attempt's container, if any. Raises OSError."""
        if self._record is not None:
            self._record.begins(inside.name)
        return command.command(self._container, inside, command.outside())

    def is_gone(self, name: Optional[str]) -> bool:
        """Start or continue to remove an ended attempt's container; return whether it is gone.

        A container that stays for ``GONE_S`` counts as gone, too, but stays recorded, and ``down`` reports it.
        """
        self.remove(name)
        self.look()
        return name not in self._removals

    def remove(self, name: Optional[str]) -> None:
        """Start to remove an attempt's container, unless the removal has begun or the container is gone."""
        if self._record is not None and name in self._record.names and not {name} & {*self._removals, *self._stay}:
            self._begin(name, time.monotonic() + GONE_S)

    def _begin(self, name: str, until: float) -> None:
        if self._container is None:
            return
        try:
            self._removals[name] = Removal(self._container.program, name, until)
        except OSError as error:
            self._give_up(name, os.strerror(error.errno or 0))

    def _give_up(self, name: str, why: str) -> None:
        say(f"container {name} cannot be removed: {why}; it stays recorded in {self._folder.own / CONTAINERS}")
        self._stay.add(name)

    def look(self) -> None:
        """Forget the containers that are proven gone; retry each other removal for at most ``GONE_S``."""
        for name, removal in list(self._removals.items()):
            proven = removal.is_proven()
            if proven is None and time.monotonic() <= removal.until:
                continue
            del self._removals[name]
            if proven and self._record is not None:
                self._record.gone(name)
            elif time.monotonic() <= removal.until:
                self._begin(name, removal.until)
            else:
                removal.give_up()
                self._give_up(name, f"it is still there after {GONE_S:.0f} s")

    @property
    def pids(self) -> List[int]:
        """Return the pids of the processes that remove containers."""
        return [removal.pid for removal in self._removals.values()]


class OneShot:
    """The container of a program that this process runs once; without one, the program runs on this host itself.

    The runtime removes the container when the program ends. So no container remains if this process is killed.

    Args:
      purpose: a word for the container's name.
      request: the container of the tasks; None where they run on this host itself.
      workdir, checkpoint_dir: the folders that the program sees in its container.

    Raises:
      runtimes.Lacking: the container cannot run here.
    """

    def __init__(self, purpose: str, request: Optional[Container], workdir: Path, checkpoint_dir: Optional[str] = None):
        self._container = runtimes.of_run(request, workdir, checkpoint_dir)
        self._name = f"launch.{purpose}.{os.getpid()}.{secrets.token_hex(4)}"

    @property
    def outside(self) -> Dict[str, str]:
        """Return the variables that the program inherits: this process's, or none in a container.

        The variables of an image are not known here.
        """
        return command.outside() if self._container is None else {}

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: str, has_gpus: bool = False) -> Command:
        """Return the command that runs ``argv`` in ``folder``.

        ``env`` are variables in addition to those of this process, or in a container to those of the image.
        """
        program, *arguments = argv
        argv = argv if self._container is not None else [os.path.expanduser(program), *arguments]
        inside = Inside(self._name, argv, env, folder, has_gpus, once=True)
        return command.command(self._container, inside, command.outside())

    def end(self) -> None:
        """Remove the container of a killed program."""
        if self._container is not None and self._container.is_named:
            try:
                control.remove(self._container.program, [self._name])
            except control.NoAnswer as error:
                say(f"container {self._name} cannot be removed: {error}")
