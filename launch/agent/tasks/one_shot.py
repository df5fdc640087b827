"""A program beside the tasks that this process runs once and waits for, in the tasks' container where they have one."""

import os
import secrets
from typing import Mapping, Optional, Sequence

from launch.agent.containers import command, control
from launch.agent.containers.command import Command, Inside, RunContainers
from launch.agent.state.log import say
from launch.agent.tasks.task_env import outside


class OneShot:
    """A program for one purpose, a word that is part of its container's name.

    Its runtime removes the container when the program ends. So nothing is left where this process is killed.
    """

    def __init__(self, container: Optional[RunContainers], purpose: str):
        self._container = container
        self._name = f"launch.{purpose}.{os.getpid()}.{secrets.token_hex(4)}"

    def command(self, argv: Sequence[str], env: Mapping[str, str], folder: str, has_gpus: bool = False) -> Command:
        """Return its command; ``env`` are its variables beside those of this process."""
        if self._container is None:
            program, *arguments = argv
            return Command([os.path.expanduser(program), *arguments], {**outside(), **env})
        inside = Inside(self._name, argv, env, folder, has_gpus, once=True)
        return command.command(self._container, inside, outside())

    def end(self) -> None:
        """Remove its container, where the program was killed before it ended."""
        if self._container is not None and self._container.is_named:
            try:
                control.remove(self._container.program, [self._name])
            except control.NoAnswer as error:
                say(f"container {self._name} cannot be removed: {error}")
