"""What this host's GPUs are doing: asked of the driver, and of the runs that booked them."""

import subprocess
from typing import Any, Dict, Mapping, Optional, Sequence

from launch.agent.booking import who_holds
from launch.agent.gpu_memory import held
from launch.agent.processes import command_line

ANSWER_S = 20.0
_ASK = ["nvidia-smi", "--query-gpu=driver_version,uuid,name", "--format=csv,noheader,nounits"]


def driver_and_gpus() -> Dict[str, Any]:
    """{"driver": version or None, "gpus": […]}; each GPU, by index, as ``_gpu`` tells it."""
    rows = [line.split(", ") for line in (_output(_ASK) or "").splitlines()]
    users = held() if rows else []
    gpus = [_gpu(row[1:], [user for user in users if user["gpu"] == index]) for index, row in enumerate(rows)]
    return {"driver": rows[0][0] if rows else None, "gpus": gpus}


def _gpu(names: Sequence[str], users: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """{"uuid", "name", "booked": by whom or None, "processes": ["pid 42 (python train.py), 9000 MiB"]}"""
    processes = [f"pid {user['pid']} ({command_line(user['pid'])[:80]}), {user['mib'] or '?'} MiB" for user in users]
    return {"uuid": names[0], "name": names[1], "booked": who_holds(names[0]), "processes": processes}


def _output(argv: Sequence[str]) -> Optional[str]:
    try:
        done = subprocess.run(list(argv), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
