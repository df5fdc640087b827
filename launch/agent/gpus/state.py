"""The state of this host's GPUs, from the driver and from the runs that booked them."""

from typing import Any, Mapping, Sequence

from launch.agent.gpus import nvidia_smi
from launch.agent.gpus.booking import who_holds
from launch.agent.gpus.memory import held
from launch.agent.linux.processes import command_line
from launch.agent.wire.host_facts import Gpu, Gpus

_ASK = nvidia_smi.question("gpu", "driver_version", "uuid", "name")


def driver_and_gpus() -> Gpus:
    """Return the driver's version, and the GPUs in the order of their indices."""
    rows = nvidia_smi.rows(nvidia_smi.ask(_ASK))
    users = held() if rows else []
    gpus = [_gpu(row[1:], [user for user in users if user["gpu"] == index]) for index, row in enumerate(rows)]
    return Gpus(rows[0][0] if rows else None, gpus)


def _gpu(names: Sequence[str], users: Sequence[Mapping[str, Any]]) -> Gpu:
    """Return a GPU with its users: ``pid 42 (python train.py), 9000 MiB``."""
    processes = [f"pid {user['pid']} ({command_line(user['pid'])[:80]}), {user['mib'] or '?'} MiB" for user in users]
    return Gpu(names[0], names[1], who_holds(names[0]), processes)
