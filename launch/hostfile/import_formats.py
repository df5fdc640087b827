"""Read the host lists of other launchers.

The lists are the host files of MPI and DeepSpeed, Horovod's ``-H``, and Slurm's environment. A *slot* is a place for
one process of these programs, in most clusters one GPU.
"""

import re
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster.errors import Problem, SpecError
from cluster.spec.host_names import HostError, hosts

MOST_SLOTS = 1024
_SLOTS = "a number of slots from 1 to 1024"
_LIMITS = ("max_slots", "max-slots")  # the most processes on a host; the slots are never more
_REPEATED = re.compile(r"(\d+)(?:\(x(\d+)\))?")


class Listed(NamedTuple):
    """A host and its slots; None where the list has no number of slots."""

    host: str
    slots: Optional[int]


class _Wrong(Exception):
    """An invalid entry: the expected value, the found value, and a hint."""


def from_file(path: Path) -> List[Listed]:
    """Return the hosts of a file with lines such as ``gpu01 slots=4``, ``gpu01:4`` or ``gpu01``.

    Raises:
      SpecError: the file, or lines in it, cannot be read; the error lists every such line.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "something else"
        raise SpecError([Problem(str(path), None, None, "", "a text file that can be read", reason.lower())]) from error
    numbered = [(number, re.sub(r"#.*", "", line).strip()) for number, line in enumerate(lines, 1)]
    return _collected(str(path), [(number, line) for number, line in numbered if line])


def from_text(text: str) -> List[Listed]:
    """Return the hosts of a text for ``horovodrun -H``, such as ``gpu01:4,gpu02:4``.

    Raises:
      SpecError: an entry cannot be read.
    """
    return _collected("--hosts", [(None, item) for item in split(text)])


def from_slurm(environ: Mapping[str, str]) -> List[Listed]:
    """Return the nodes of the allocation that this process runs in.

    The slots are the GPUs of each node in the allocation, or without GPUs, the tasks per node.

    Raises:
      SpecError: no allocation exists, or one of its variables cannot be read.
    """
    listed = environ.get("SLURM_JOB_NODELIST") or environ.get("SLURM_NODELIST")
    if not listed:
        hint = "run it inside of `salloc` or an sbatch script"
        raise SpecError(
            [
                Problem(
                    where="SLURM_JOB_NODELIST",
                    line=None,
                    column=None,
                    key="",
                    expected="the nodes of an allocation",
                    found="nothing",
                    hint=hint,
                )
            ]
        )
    nodes = [name.host for name in _collected("SLURM_JOB_NODELIST", [(None, item) for item in split(listed)])]
    for variable, read in _SLURM_SLOTS.items():
        if environ.get(variable):
            try:
                return [Listed(node, slots) for node, slots in zip(nodes, read(environ[variable], len(nodes)))]
            except _Wrong as wrong:
                raise SpecError([Problem(variable, None, None, "", *wrong.args)]) from None
    return [Listed(node, None) for node in nodes]


def split(text: str) -> List[str]:
    """Split a text such as ``gpu[01,03],cpu01`` at the commas outside of ranges."""
    return re.findall(r"(?:\[[^\]]*\]|[^,])+", text)


def _collected(where: str, lines: Sequence[Tuple[Optional[int], str]]) -> List[Listed]:
    problems: List[Problem] = []
    found: List[Listed] = []
    places: Dict[str, Optional[int]] = {}
    for number, line in lines:
        try:
            for listed in _read(line):
                if listed.host in places:
                    first = f" (the first is in line {places[listed.host]})" if number else ""
                    raise _Wrong("each host once", f"a second '{listed.host}'{first}", "add the slots up in one line")
                places[listed.host] = number
                found.append(listed)
        except _Wrong as wrong:
            problems.append(Problem(where, number, 1 if number else None, "", *wrong.args))
    if not found and not problems:
        problems.append(Problem(where, None, None, "", "at least one host", "none"))
    if problems:
        raise SpecError(problems)
    return found


def _read(line: str) -> Iterator[Listed]:
    """Yield the hosts of one line: ``gpu01 slots=4 max_slots=8``, ``gpu01:4``, ``gpu[01-04]``."""
    name, *settings = re.sub(r"\s*=\s*", "=", line).split()
    slots: Optional[int] = None
    if name.count(":") == 1:
        name, _, number = name.partition(":")
        slots = _number(number)
    for setting in settings:
        key, _, value = setting.partition("=")
        if key == "slots":
            slots = _number(value)
        elif key not in _LIMITS:
            hint = "user names belong into ssh.user of the hosts file" if key in ("user", "username") else ""
            raise _Wrong("HOST slots=N", f"'{setting}'", hint)
    try:
        yield from (Listed(host, slots) for host in hosts(name))
    except HostError as error:
        raise _Wrong(error.expected, error.found, error.hint) from None


def _number(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= MOST_SLOTS:
        raise _Wrong(_SLOTS, f"'{text}'", "")
    return int(text)


# -- Slurm's ways to count


def _same_on_all(text: str, nodes: int) -> List[int]:
    """Return the same slots for all nodes: ``4``, ``a100:4`` or ``gpu:a100:4``.

    The function adds up the counts of all types of GPU.
    """
    return [sum(_number(part.rsplit(":", 1)[-1]) for part in text.split(","))] * nodes


def _indices(text: str, nodes: int) -> List[int]:
    """Return the number of GPUs in ``0,1,2,3`` or ``0-3`` for each node.

    The text has the GPUs of the first node, and the other nodes have as many.
    """
    pieces = [re.fullmatch(r"(\d+)(?:-(\d+))?", piece) for piece in text.split(",")]
    if not all(pieces):
        raise _Wrong("indices of GPUs such as 0,1 or 0-3", f"'{text}'", "")
    return [sum(int(piece[2] or piece[1]) - int(piece[1]) + 1 for piece in pieces if piece)] * nodes


def _repeated(text: str, nodes: int) -> List[int]:
    """Return the slots of ``4(x2),3``: four on each of two nodes, then three."""
    pieces = [_REPEATED.fullmatch(piece) for piece in text.split(",")]
    if not all(pieces):
        raise _Wrong("counts such as 4(x2),3", f"'{text}'", "")
    counts = [_number(piece[1]) for piece in pieces if piece for _ in range(int(piece[2] or 1))]
    if len(counts) != nodes:
        raise _Wrong(f"a count for each of the {nodes} nodes", f"{len(counts)} in '{text}'", "")
    return counts


# The first variable that is set counts.
_SLURM_SLOTS = {
    "SLURM_GPUS_PER_NODE": _same_on_all,
    "SLURM_GPUS_ON_NODE": _same_on_all,
    "SLURM_JOB_GPUS": _indices,
    "SLURM_TASKS_PER_NODE": _repeated,
}
