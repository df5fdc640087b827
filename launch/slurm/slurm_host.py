"""A host reached by ``srun``: each program on it, and each connection to one of its ports, is a step of the job."""

import os
from typing import Any, Mapping, Optional, Sequence

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import Channel, Host
from launch.hosts.closing import EndingProcesses
from launch.hosts.local_host import LocalChannel
from launch.hosts.relay import connected, relay_argv
from launch.slurm import srun
from launch.slurm.srun import Allocation, leave


class StepChannel(LocalChannel):
    """One ``srun``, which runs one program on one node."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], ending: EndingProcesses):
        super().__init__(argv, env)
        self._stays, self._ending = False, ending

    def leave_running(self) -> None:
        self._stays = True

    def complaint(self) -> str:
        return srun.complaint_of_program(super().complaint())

    def last_words(self) -> str:
        """Return the last line that arrived; without one, the last line of ``srun`` on stderr."""
        return super().last_words() or next(iter(super().complaint().splitlines()[-1:]), "")

    def _end(self) -> None:
        if self._stays:
            leave(self._process)
        else:
            self._ending.add(self._process)


class SlurmHost(Host):
    """A node of the allocation, by its name in Slurm.

    Args:
      environ: the environment of every ``srun``, without secrets: ``srun.environment``.
      ending: collects the steps that must end.
    """

    def __init__(
        self,
        name: str,
        python: str,
        allocation: Allocation,
        environ: Mapping[str, str],
        ending: EndingProcesses,
        before: Sequence[str] = (),
    ):
        super().__init__(name, python, before)
        self._allocation, self._environ, self._ending = allocation, environ, ending

    @property
    def job(self) -> str:
        """Return the id of the Slurm job that has allocated the host."""
        return self._allocation.job

    def connect(self) -> None:
        """Check that the host is in the allocation. Each program opens its own connection."""
        problem = self._allocation.problem_of(self.name)
        if problem is not None:
            raise problem

    def open(self, argv: Sequence[str]) -> Channel:
        return self._step(srun.holding(argv))

    def dial(self, port: int) -> Any:
        channel = self._step(relay_argv(self.python, port), raw=True)
        return connected(self.name, port, channel)

    def refusal(self, complaint: str) -> Optional[HostProblem]:
        return srun.problem(self.name, self.job, complaint)

    def _step(self, argv: Sequence[str], raw: bool = False) -> StepChannel:
        self.connect()
        try:
            return StepChannel(srun.command(self.name, argv, self.before, raw), self._environ, self._ending)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise HostProblem(self.name, ProblemKind.HERE, f"cannot start srun: {why}") from error
