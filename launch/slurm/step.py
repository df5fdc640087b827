"""The command line and the environment of one ``srun``, which starts one program on one node."""

from typing import Collection, Dict, List, Mapping, Sequence

from launch.hosts.shell import command_line
from launch.slurm.allocation import JOB

# A step shares all of the job with the job's other steps, and takes all that the job has on the node: processors,
# memory and GPUs. Everything that an environment or a partition may choose otherwise is chosen here.
_OPTIONS = (
    "--overlap", "--nodes=1", "--ntasks=1", "--mem=0", "--cpu-bind=none", "--mpi=none", "--chdir=/", "--export=ALL",
    "--job-name=launch",
)  # fmt: skip
# Of Slurm's variables srun reads dozens as options; those of the batch job mean another step than ours.
_KEPT = (JOB, "SLURM_CONF", "SLURM_CONF_SERVER", "SLURM_CLUSTERS", "SLURM_JWT")

# The first process of a step, in a syntax that every Python can read. It starts another Python with the words that
# follow in argv, adopts whatever that leaves, and ends last. A signal to the whole step is for the others: they end,
# and then this does.
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
    """Return the ``srun`` that runs ``argv`` on a node, by a shell, for which a leading ``~/`` means home.

    Args:
      before: commands for the shell.
      raw: pass the program's output on byte by byte; else Slurm passes it on line by line.
    """
    options = [*_OPTIONS, *(["--unbuffered"] if raw else []), f"--nodelist={host}"]
    return ["srun", *options, "/bin/sh", "-c", command_line(argv, before)]


def holding(argv: Sequence[str]) -> List[str]:
    """Return the argv of a Python program that ends only after every process that it started, in any session."""
    return [argv[0], "-S", "-c", HOLD, *argv[1:]]


def environment(environ: Mapping[str, str], secrets: Collection[str]) -> Dict[str, str]:
    """Return the environment of ``srun``, which exports it to the program: no secrets, and no options of a job."""
    kept = {name: value for name, value in environ.items() if name in _KEPT or not name.startswith(("SLURM_", "SRUN_"))}
    return {name: value for name, value in kept.items() if name not in secrets}
