"""The Slurm job of this process, and one program on one of the job's nodes by ``srun``.

On stderr, ``srun`` reports why it started no step, and how a step's program ended. Most ``srun`` processes end with the
launcher's request; some last as long as an agent.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from typing import Collection, Dict, List, Mapping, Optional, Sequence, Tuple

from cluster.errors import SpecError
from launch.errors import HostProblem, ProblemKind
from launch.hostfile.schedulers import from_slurm
from launch.hosts.channel import command_line
from launch.hosts.closing import living
from launch.view.console import fold

JOB, NODES = "SLURM_JOB_ID", "SLURM_JOB_NODELIST"
FIRST_GROUP = (f"{NODES}_HET_GROUP_0", f"{NODES}_PACK_GROUP_0")  # of a heterogeneous job


@dataclass(frozen=True)
class Allocation:
    """A job and its nodes, which are those of group 0 in a heterogeneous job.

    ``nodes`` is () if the environment names a job without its nodes, as for a process outside the job.
    """

    job: str
    nodes: Tuple[str, ...] = ()
    is_heterogeneous: bool = False

    def problem_of(self, host: str) -> Optional[HostProblem]:
        """Return the problem of a host that is not a node of the job; None for a node."""
        if not self.nodes or host in self.nodes:
            return None
        expected = f"expected a node of Slurm's job {self.job}, which has {fold(self.nodes)}"
        advice = "write the names that Slurm uses into the hosts file; `launch import --slurm` does"
        if self.is_heterogeneous:
            expected += " in group 0"
            advice = "transport: slurm reaches only that group; remove the key transport, to use SSH"
        return HostProblem(host, ProblemKind.UNKNOWN_NAME, expected, advice)


def find_allocation(environ: Mapping[str, str]) -> Allocation:
    """Return the allocation that the environment names.

    Raises:
      HostProblem: no allocation exists, or ``srun`` is not on PATH.
    """
    if not environ.get(JOB):
        missing = f"transport: slurm: expected an allocation of Slurm ({JOB}), found none"
        raise HostProblem.here(missing, "start the launcher in an sbatch script or in a shell of salloc")
    if shutil.which("srun", path=environ.get("PATH")) is None:
        missing = "transport: slurm: expected srun on PATH, found none"
        raise HostProblem.here(missing, "start the launcher on a machine with Slurm's commands, or use transport: ssh")
    group = next(filter(None, map(environ.get, FIRST_GROUP)), "")
    return Allocation(environ[JOB], _nodes(group or environ.get(NODES, "")), bool(group))


def _nodes(listed: str) -> Tuple[str, ...]:
    if not listed:
        return ()
    try:
        return tuple(node.host for node in from_slurm({NODES: listed}).workers)
    except SpecError as error:
        raise HostProblem.here(str(error)) from error


# A step shares the job's resources with its other steps, and takes all processors, memory and GPUs that the job has on
# the node. The options fix every setting that an environment or a partition could change.
_OPTIONS = (
    "--overlap", "--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none", "--mpi=none", "--chdir=/", "--export=ALL",
    "--job-name=launch",
)  # fmt: skip
# srun reads dozens of Slurm's variables as options; the variables of the batch job describe another step.
_KEPT = (JOB, "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT")

# The first process of a step, in a syntax that every Python can read. The process starts another Python with the other
# words in argv, adopts the processes that this Python leaves, and ends last. It ignores signals to the whole step, and
# ends after the others have ended.
HOLD = """\
import ctypes, os, signal, sys
def all_to(what):
    for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
        signal.signal(number, what)
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
all_to(signal.SIG_IGN)
if os.fork() == 0:
    all_to(signal.SIG_DFL)
    os.execv(sys.executable, [sys.executable] + sys.argv[1:])
nothing = os.open(os.devnull, os.O_RDWR)
for number in 0, 1, 2:
    os.dup2(nothing, number)
while True:
    try:
        os.wait()
    except OSError:
        break
"""


def command(host: str, argv: Sequence[str], before: Sequence[str] = (), raw: bool = False) -> List[str]:
    """Return the ``srun`` command that runs ``argv`` on a node in a shell; a leading ``~/`` means home.

    Args:
      before: commands for the shell.
      raw: forward the program's output byte by byte; otherwise Slurm forwards it line by line.
    """
    options = [*_OPTIONS, *(["--unbuffered"] if raw else []), f"--nodelist={host}"]
    return ["srun", *options, "/bin/sh", "-c", command_line(argv, before)]


def holding(argv: Sequence[str]) -> List[str]:
    """Return the argv of a Python program that ends only after every process it started, in any session."""
    return [argv[0], "-S", "-c", HOLD, *argv[1:]]


def environment(environ: Mapping[str, str], secrets: Collection[str]) -> Dict[str, str]:
    """Return the environment of ``srun`` and, by export, of the program: without secrets and options of a job."""
    kept = {name: value for name, value in environ.items() if name in _KEPT or not name.startswith(("SLURM_", "SRUN_"))}
    return {name: value for name, value in kept.items() if name not in secrets}


# "srun: error: h2: task 0: Exited with exit code 1" is less helpful than the program's own output.
_END_OF_TASK = re.compile(r"srun: error: \S+: task 0: ")
_REASON = re.compile(r"srun: (?:error|fatal): (.*)")
_OWN = "srun: "


def complaint_of_program(text: str) -> str:
    """Return ``text``, the stderr of a step, without the lines of ``srun`` that give no reason for a failed start."""
    lines = [line for line in text.splitlines() if not _END_OF_TASK.match(line)]
    return "\n".join(line for line in lines if not line.startswith(_OWN) or _REASON.match(line))


def problem(host: str, job: str, complaint: str) -> Optional[HostProblem]:
    """Return the problem of a host on which ``srun`` started no step; None where ``srun`` gives no reason."""
    reasons = [found[1] for found in map(_REASON.match, complaint.splitlines()) if found]
    if not reasons:
        return None
    what = f"srun failed there: {reasons[0]}"
    return HostProblem(host, ProblemKind.UNREACHABLE, what, advice=f"see `scontrol show job {job}`")


_LEFT: List["subprocess.Popen[bytes]"] = []  # kept, because every child must be reaped


def leave(srun: "subprocess.Popen[bytes]") -> None:
    """Let the step of ``srun`` continue, because an agent runs in the step."""
    _LEFT[:] = [*living(_LEFT), srun]
