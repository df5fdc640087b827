"""The processes that hold memory of this host's GPUs."""

from typing import Any, Dict, Iterable, List

from launch.agent.gpus import nvidia_smi
from launch.agent.gpus.assignment import list_gpus

_ASK = nvidia_smi.question("compute-apps", "gpu_uuid", "pid", "used_memory")


def held_by(pids: Iterable[int]) -> List[Dict[str, Any]]:
    """Return the memory that these processes hold: {"gpu": index, "pid", "mib"}.

    The result is empty where there is no driver. ``mib`` is None where the driver does not report it, as on GPUs that
    show graphics.
    """
    wanted = set(pids)
    return [one for one in held() if one["pid"] in wanted] if wanted else []


def held() -> List[Dict[str, Any]]:
    """Return the memory of every process of this host, as ``held_by`` does."""
    rows = nvidia_smi.rows(nvidia_smi.ask(_ASK))
    index = {identity: number for number, identity in enumerate(list_gpus())} if rows else {}
    return [
        {"gpu": index.get(row[0], row[0]), "pid": int(row[1]), "mib": int(row[2]) if row[2].isdigit() else None}
        for row in rows
        if len(row) == 3 and row[1].isdigit()
    ]
