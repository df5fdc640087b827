"""The Slurm job around this process."""

import shutil
from dataclasses import dataclass
from typing import Mapping, Optional, Tuple

from cluster.errors import SpecError
from launch.errors import HostProblem, ProblemKind
from launch.hostfile.import_formats import from_slurm
from launch.view.console import fold

JOB, NODES = "SLURM_JOB_ID", "SLURM_JOB_NODELIST"


@dataclass(frozen=True)
class Allocation:
    """A job and its nodes; () where the environment names a job and not its nodes, as outside of the job."""

    job: str
    nodes: Tuple[str, ...] = ()

    def problem_of(self, host: str) -> Optional[HostProblem]:
        """Return the problem of a host that is none of the job's nodes; None where it is one."""
        if not self.nodes or host in self.nodes:
            return None
        return HostProblem(
            host,
            ProblemKind.UNKNOWN_NAME,
            f"expected a node of Slurm's job {self.job}, which has {fold(self.nodes)}",
            advice="write the names that Slurm uses into the hosts file; `launch import --slurm` does",
        )


def find(environ: Mapping[str, str]) -> Allocation:
    """Return the allocation that the environment names.

    Raises:
      HostProblem: there is none, or no ``srun`` to use it with.
    """
    if not environ.get(JOB):
        missing = f"transport: slurm: expected an allocation of Slurm ({JOB}), found none"
        raise _here(missing, "start it in an sbatch script or in a shell of salloc")
    if shutil.which("srun", path=environ.get("PATH")) is None:
        missing = "transport: slurm: expected srun on PATH, found none"
        raise _here(missing, "start it on a machine with Slurm's commands, or use transport: ssh")
    return Allocation(environ[JOB], _nodes(environ))


def _nodes(environ: Mapping[str, str]) -> Tuple[str, ...]:
    if not environ.get(NODES):
        return ()
    try:
        return tuple(listed.host for listed in from_slurm({NODES: environ[NODES]}))
    except SpecError as error:
        raise _here(str(error)) from error


def _here(what: str, advice: str = "") -> HostProblem:
    return HostProblem("this machine", ProblemKind.HERE, what, advice)
