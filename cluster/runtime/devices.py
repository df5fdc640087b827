"""The devices of one task, and the devices of each of its towers."""

from typing import Any, Iterable, List

from cluster.errors import TaskError
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train


def tower_devices(settings: Train) -> List[str]:
    """Return the first device of each of this task's towers: ``["GPU:0", "GPU:1"]``; see ``devices_among``."""
    return devices_among(len(available_gpus()), settings)


def devices_among(gpus: int, settings: Train) -> List[str]:
    """Return the first device of each tower of a task with ``gpus`` GPUs; CPU devices where it has no GPU.

    A tower takes ``settings.stages`` consecutive devices.

    Raises:
      TaskError: the task has fewer GPUs than the towers need.
    """
    stages = settings.stages
    towers = max(gpus // stages, 1) if settings.towers == "auto" else int(settings.towers)
    if 0 < gpus < towers * stages:
        needs = f", at {stages} a tower" if stages > 1 else ""
        most = f"at most {gpus // stages}, the GPUs of this task{needs}"
        raise TaskError(f"train.towers: expected {most}; found {towers}")
    return [f"{'GPU' if gpus else 'CPU'}:{tower * stages}" for tower in range(towers)]


def stage_devices(first: str, stages: int) -> List[str]:
    """Return all devices of the tower that begins with ``first``: for ``GPU:2`` and 2 stages, GPU:2 and GPU:3."""
    kind, _, index = first.partition(":")
    return [f"{kind}:{int(index) + stage}" for stage in range(stages)]


def gpus_of(task: Task, devices: Iterable[Any]) -> int:
    """Count the GPUs of ``task`` among the devices that a session lists."""
    own = f"/job:{task.role}/replica:0/task:{task.index}/device:GPU:"
    return sum(device.name.startswith(own) for device in devices)


def ps_device(index: int) -> str:
    """Return the device on which parameter server ``index`` holds its values."""
    return f"/job:ps/task:{index}/device:CPU:0"


def worker_device(role: str, index: int, device: str = "CPU:0") -> str:
    """Return a device of one worker: ``/job:worker/task:1/device:GPU:0``."""
    return f"/job:{role}/task:{index}/device:{device}"


def available_gpus() -> List[str]:
    """Return names of the GPUs that this process sees, ``["/device:GPU:0", …]``.

    The function asks for the physical devices, because listing the logical devices would take their memory.
    """
    found = tf.config.experimental.list_physical_devices("GPU")
    return [f"/device:GPU:{index}" for index in range(len(found))]


def device_names(number: int) -> List[str]:
    """Return names of ``number`` devices: GPUs if this process sees any, else as many CPU devices.

    A process has one CPU device unless its session or server is configured with
    ``tf.ConfigProto(device_count={"CPU": number})``.
    """
    kind = "GPU" if available_gpus() else "CPU"
    return [f"/device:{kind}:{index}" for index in range(number)]
