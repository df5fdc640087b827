"""Whose memory is on this host's GPUs."""

import subprocess
from typing import Any, Dict, Iterable, List

from launch.agent.gpus import LIST_S, list_gpus

_ASK = ["nvidia-smi", "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits"]


def held_by(pids: Iterable[int]) -> List[Dict[str, Any]]:
    """The memory that these processes hold: {"gpu": index, "pid", "mib"}; none where there is no driver.

    ``mib`` is None where the driver does not tell, as on GPUs that show graphics.
    """
    wanted = set(pids)
    return [one for one in held() if one["pid"] in wanted] if wanted else []


def held() -> List[Dict[str, Any]]:
    """The same of every process of this host."""
    try:
        told = subprocess.run(_ASK, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIST_S)
    except (OSError, subprocess.TimeoutExpired):
        return []
    index = {identity: number for number, identity in enumerate(list_gpus())}
    rows = [line.split(", ") for line in told.stdout.decode(errors="replace").splitlines()]
    return [
        {"gpu": index.get(row[0], row[0]), "pid": int(row[1]), "mib": int(row[2]) if row[2].isdigit() else None}
        for row in rows
        if len(row) == 3 and row[1].isdigit()
    ]
