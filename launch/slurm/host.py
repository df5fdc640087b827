"""A host reached by ``srun``: each program on it is a step of the job."""

import os
from typing import Any, Mapping, Optional, Sequence

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import Channel, Host
from launch.hosts.local import LocalChannel
from launch.slurm import refusals, relay, step
from launch.slurm.allocation import Allocation
from launch.slurm.steps import Ending, leave


class StepChannel(LocalChannel):
    """One ``srun``, which runs one program on one node."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], ending: Ending):
        super().__init__(argv, env)
        self._stays, self._ending = False, ending

    def leave_running(self) -> None:
        self._stays = True

    def complaint(self) -> str:
        return refusals.of_program(super().complaint())

    def last_words(self) -> str:
        """Return the last line that came; without one, what ``srun`` waits for."""
        return super().last_words() or next(iter(super().complaint().splitlines()[-1:]), "")

    def _end(self) -> None:
        if self._stays:
            leave(self._process)
        else:
            self._ending.add(self._process)


class SlurmHost(Host):
    """A node of the allocation, by Slurm's name of it.

    Args:
      environ: of every ``srun``, without secrets: ``step.environment``.
      ending: gets each step that is to end.
    """

    def __init__(
        self,
        name: str,
        python: str,
        allocation: Allocation,
        environ: Mapping[str, str],
        ending: Ending,
        before: Sequence[str] = (),
    ):
        super().__init__(name, python, before)
        self._allocation, self._environ, self._ending = allocation, environ, ending

    @property
    def job(self) -> str:
        """Return the job of Slurm of which the host is a node."""
        return self._allocation.job

    def connect(self) -> None:
        """Check that the host is in the allocation. Each program makes a connection of its own."""
        problem = self._allocation.problem_of(self.name)
        if problem is not None:
            raise problem

    def open(self, argv: Sequence[str]) -> Channel:
        return self._step(step.holding(argv))

    def dial(self, port: int) -> Any:
        channel = self._step(relay.argv(self.python, port), raw=True)
        return relay.connected(self.name, port, channel)

    def refusal(self, complaint: str) -> Optional[HostProblem]:
        return refusals.problem(self.name, self.job, complaint)

    def _step(self, argv: Sequence[str], raw: bool = False) -> StepChannel:
        self.connect()
        try:
            return StepChannel(step.command(self.name, argv, self.before, raw), self._environ, self._ending)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise HostProblem(self.name, ProblemKind.HERE, f"cannot start srun: {why}") from error
