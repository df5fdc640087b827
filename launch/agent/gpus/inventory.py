"""The GPUs of this host and their state, from the driver and from the runs that booked them.

The health of a GPU is memory errors that ECC cannot correct, and clocks that the hardware reduces. A driver that lacks
one of the fields refuses the whole question, so fewer are asked then. A card without ECC, and one whose driver does not
know, answers ``[N/A]``.
"""

import os
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple, Optional, Sequence

from launch.agent.gpus import nvidia_smi
from launch.agent.gpus.assignment import allotted, who_holds
from launch.agent.linux.processes import command_line
from launch.agent.wire.host_facts import Gpu, Gpus

_ERRORS, _SLOWED = "ecc.errors.uncorrected.volatile.total", "clocks_throttle_reasons.hw_slowdown"
ASK = nvidia_smi.question("gpu", "uuid", _ERRORS, _SLOWED)
ASK_LESS = nvidia_smi.question("gpu", "uuid", _ERRORS)


class Health(NamedTuple):
    """The health of one GPU; ``memory_errors`` is None where none are counted."""

    memory_errors: Optional[int] = None
    slowed: bool = False


def health_of_all() -> Dict[str, Health]:
    """Return the health of each GPU by its UUID, as far as the driver reports it. Raises NoAnswer."""
    return read_health(nvidia_smi.ask(ASK)) or read_health(nvidia_smi.ask(ASK_LESS))


def read_health(answer: str) -> Dict[str, Health]:
    """Parse lines ``GPU-5f3c…, 2, Active`` of an answer; a line may end after the errors."""
    rows = [row for row in nvidia_smi.rows(answer) if len(row) >= 2]
    return {row[0]: Health(_error_count(row[1]), row[2:3] == ["Active"]) for row in rows}


def _error_count(text: str) -> Optional[int]:
    return int(text) if text.isdigit() else None


UNKNOWN = "unknown (the driver does not answer)"  # in the place of an index
_GPUS = nvidia_smi.question("gpu", "driver_version", "uuid", "name")
_USERS = nvidia_smi.question("compute-apps", "gpu_uuid", "pid", "used_memory")


def driver_and_gpus() -> Gpus:
    """Return the driver's version, and the GPUs that tasks may have, in their order. Raises NoAnswer."""
    rows = nvidia_smi.rows(nvidia_smi.ask(_GPUS))
    users, health = (_memory(), health_of_all()) if rows else ([], {})
    gpus = [
        _gpu(row[1:], [user for user in users if user["gpu"] == index], health.get(row[1], Health()))
        for index, row in enumerate(rows)
    ]
    usable = allotted([gpu.uuid for gpu in gpus], os.environ)
    return Gpus(rows[0][0] if rows else None, [gpus[index] for index in usable])


def memory_of(pids: Iterable[int]) -> List[Dict[str, Any]]:
    """Return the GPU memory that these processes hold: {"gpu": index, "pid", "mib"}.

    The result is empty where there is no driver. ``mib`` is None where the driver does not report it, as on GPUs that
    show graphics. Where the driver hangs, every process may hold memory of a GPU that is not known.
    """
    wanted = set(pids)
    try:
        return [each for each in _memory() if each["pid"] in wanted] if wanted else []
    except nvidia_smi.CardLost:
        return []  # no process can use that card, and no driver would answer for the others
    except nvidia_smi.NoDriverAnswer:
        return [{"gpu": UNKNOWN, "pid": pid, "mib": None} for pid in sorted(wanted)]


def _memory() -> List[Dict[str, Any]]:
    """Return the GPU memory of every process of this host, as ``memory_of`` does."""
    rows = nvidia_smi.rows(nvidia_smi.ask(_USERS))
    index = {identity: number for number, identity in enumerate(nvidia_smi.list_gpus())} if rows else {}
    return [
        {"gpu": index.get(row[0], row[0]), "pid": int(row[1]), "mib": int(row[2]) if row[2].isdigit() else None}
        for row in rows
        if len(row) == 3 and row[1].isdigit()
    ]


def _gpu(names: Sequence[str], users: Sequence[Mapping[str, Any]], health: Health) -> Gpu:
    """Return a GPU with its users: ``pid 42 (python train.py), 9000 MiB``."""
    processes = [f"pid {user['pid']} ({command_line(user['pid'])[:80]}), {user['mib'] or '?'} MiB" for user in users]
    return Gpu(names[0], names[1], who_holds(names[0]), processes, health.memory_errors, health.slowed)
