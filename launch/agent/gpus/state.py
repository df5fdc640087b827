"""The state of this host's GPUs, from the driver and from the runs that booked them."""

from typing import Any, Dict, Mapping, Sequence

from launch.agent.gpus import nvidia_smi
from launch.agent.gpus.booking import who_holds
from launch.agent.gpus.memory import held
from launch.agent.linux.processes import command_line

_ASK = nvidia_smi.question("gpu", "driver_version", "uuid", "name")


def driver_and_gpus() -> Dict[str, Any]:
    """Return {"driver": version or None, "gpus": […]}; each GPU, by index, as ``_gpu`` describes it."""
    rows = nvidia_smi.rows(nvidia_smi.ask(_ASK))
    users = held() if rows else []
    gpus = [_gpu(row[1:], [user for user in users if user["gpu"] == index]) for index, row in enumerate(rows)]
    return {"driver": rows[0][0] if rows else None, "gpus": gpus}


def _gpu(names: Sequence[str], users: Sequence[Mapping[str, Any]]) -> Dict[str, Any]:
    """{"uuid", "name", "booked": by whom or None, "processes": ["pid 42 (python train.py), 9000 MiB"]}"""
    processes = [f"pid {user['pid']} ({command_line(user['pid'])[:80]}), {user['mib'] or '?'} MiB" for user in users]
    return {"uuid": names[0], "name": names[1], "booked": who_holds(names[0]), "processes": processes}
