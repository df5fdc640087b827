"""Read the hosts of the batch job in which this process runs, from Slurm, PBS, Grid Engine or LSF.

In Slurm, a slot is a GPU if Slurm knows the GPUs. In PBS, Grid Engine and LSF, a slot is a place for one process.
"""

import re
from pathlib import Path
from typing import Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional

from cluster.errors import Problem, SpecError
from launch.hostfile.import_formats import Line, Listed, WrongEntry, collected, lines_of, named, slot_count, split

_REPEATED = re.compile(r"(\d+)(?:\(x(\d{1,6})\))?")
_NODES = ("SLURM_JOB_NODELIST", "SLURM_NODELIST")
_GROUP = re.compile(r"SLURM_JOB_NODELIST(_(?:HET|PACK)_GROUP_)(\d{1,9})")  # PACK: in older versions


class Hosts(NamedTuple):
    """The hosts of the workers, and those of the ps; None if the list does not separate the ps."""

    workers: List[Listed]
    ps: Optional[List[str]] = None


def from_slurm(environ: Mapping[str, str]) -> Hosts:
    """Return the nodes of the allocation that this process runs in.

    The slots of a node are its GPUs in the allocation, or without GPUs, its tasks. In a heterogeneous job,
    group 0 is for the ps, and group 1 for the workers.

    Raises:
      SpecError: there is no allocation, one of its variables is invalid, or a heterogeneous job lacks two groups.
    """
    groups = {int(found[2]): found[1] for found in map(_GROUP.fullmatch, environ) if found}
    size = environ.get("SLURM_HET_SIZE") or environ.get("SLURM_PACK_SIZE")
    if not groups and size in (None, "1"):
        return Hosts(_nodes(environ, next((name for name in _NODES if environ.get(name)), _NODES[0]), ""))
    if sorted(groups) != [0, 1] or size not in (None, "2"):
        found, hint = size or str(len(groups)), "`salloc -N1 : -N4` makes two; else write a host file, and import it"
        raise _refused("SLURM_HET_SIZE", "two groups, the ps in group 0 and the workers in group 1", found, hint)
    servers, workers = (_nodes(environ, f"{_NODES[0]}{groups[n]}{n}", f"{groups[n]}{n}") for n in (0, 1))
    return Hosts(workers, [each.host for each in servers])


def _nodes(environ: Mapping[str, str], variable: str, group: str) -> List[Listed]:
    """Return the nodes of a variable with their slots.

    Args:
      group: the ending of the names of all variables of a group in a heterogeneous job.
    """
    listed = _required(environ, variable, "the nodes of an allocation", "run it in `salloc` or an sbatch script")
    nodes = [each.host for each in collected(variable, [(None, item) for item in split(listed)])]
    for name, read in _SLURM_SLOTS.items():
        if environ.get(name + group):
            try:
                slots = read(environ[name + group], len(nodes))
                return [Listed(node, number) for node, number in zip(nodes, slots)]
            except WrongEntry as wrong:
                raise _refused(name + group, *wrong.args) from None
    return [Listed(node, None) for node in nodes]


def from_pbs(environ: Mapping[str, str]) -> Hosts:
    """Return the hosts of a PBS job, whose file has a line for each slot.

    Raises:
      SpecError: no job exists, or its file cannot be read.
    """
    hint = "run this command in the script of a job, or in a shell of `qsub -I`"
    return _from_file(_required(environ, "PBS_NODEFILE", "the file with a job's hosts", hint), _slot)


def from_sge(environ: Mapping[str, str]) -> Hosts:
    """Return the hosts of a Grid Engine job, whose file has lines such as ``gpu01 4 all.q@gpu01 UNDEFINED``.

    Raises:
      SpecError: no such job exists, or its file cannot be read.
    """
    hint = "run this command in the script of a job of `qsub -pe ENVIRONMENT SLOTS`"
    return _from_file(_required(environ, "PE_HOSTFILE", "the file with a job's hosts", hint), _slots)


def from_lsf(environ: Mapping[str, str]) -> Hosts:
    """Return the hosts of an LSF job, from a variable like ``gpu01 4 gpu02 2`` or a file with a line for each slot.

    Raises:
      SpecError: no job exists, or its variables cannot be read.
    """
    variable, file = "LSB_MCPU_HOSTS", environ.get("LSB_DJOB_HOSTFILE")
    if file and not environ.get(variable):
        return _from_file(file, _slot)
    hint = "run this command in the script of a job, or in a shell of `bsub -Is`"
    words = _required(environ, variable, "a job's hosts and their slots", hint).split()
    pairs: List[Line] = [(None, " ".join(words[at : at + 2])) for at in range(0, len(words), 2)]
    return Hosts(collected(variable, pairs, _slots))


SCHEDULERS: Mapping[str, Callable[[Mapping[str, str]], Hosts]] = {
    "slurm": from_slurm,
    "pbs": from_pbs,
    "sge": from_sge,
    "lsf": from_lsf,
}


def _required(environ: Mapping[str, str], variable: str, expected: str, hint: str) -> str:
    if not environ.get(variable):
        raise _refused(variable, expected, "nothing", hint)
    return environ[variable]


def _refused(variable: str, expected: str, found: str, hint: str) -> SpecError:
    return SpecError([Problem(variable, None, None, "", expected=expected, found=found, hint=hint)])


def _from_file(file: str, read: Callable[[str], Iterator[Listed]]) -> Hosts:
    return Hosts(collected(file, lines_of(Path(file)), read))


def _slot(line: str) -> Iterator[Listed]:
    yield from (Listed(host, 1) for host in named(line))


def _slots(line: str) -> Iterator[Listed]:
    name, number, *_ = (*line.split(), "")
    yield from (Listed(host, slot_count(number)) for host in named(name))


# -- Slurm's ways to count


def _same_on_all(text: str, nodes: int) -> List[int]:
    """Return the same slots for all nodes: ``4``, ``a100:4`` or ``gpu:a100:4``.

    The function adds up the counts of all types of GPU.
    """
    return [sum(slot_count(part.rsplit(":", 1)[-1]) for part in text.split(","))] * nodes


def _indices(text: str, nodes: int) -> List[int]:
    """Return the number of GPUs in ``0,1,2,3`` or ``0-3`` for each node.

    The text has the GPUs of the first node, and the other nodes have as many.
    """
    pieces = [re.fullmatch(r"(\d+)(?:-(\d+))?", piece) for piece in text.split(",")]
    if not all(pieces):
        raise WrongEntry("indices of GPUs such as 0,1 or 0-3", f"'{text}'", "")
    return [sum(int(piece[2] or piece[1]) - int(piece[1]) + 1 for piece in pieces if piece)] * nodes


def _repeated(text: str, nodes: int) -> List[int]:
    """Return the slots of ``4(x2),3``: four on each of two nodes, then three."""
    pieces = [_REPEATED.fullmatch(piece) for piece in text.split(",")]
    if not all(pieces):
        raise WrongEntry("counts such as 4(x2),3", f"'{text}'", "")
    counts = [slot_count(piece[1]) for piece in pieces if piece for _ in range(int(piece[2] or 1))]
    if len(counts) != nodes:
        raise WrongEntry(f"a count for each of the {nodes} nodes", f"{len(counts)} in '{text}'", "")
    return counts


# The first variable that is set counts.
_SLURM_SLOTS: Dict[str, Callable[[str, int], List[int]]] = {
    "SLURM_GPUS_PER_NODE": _same_on_all,
    "SLURM_GPUS_ON_NODE": _same_on_all,
    "SLURM_JOB_GPUS": _indices,
    "SLURM_TASKS_PER_NODE": _repeated,
}
