"""The environment variables that a task's process gets."""

import os
from pathlib import Path
from typing import Dict, Mapping, Sequence

ENVIRONMENT = {  # of every task, beyond what its agent has and `env` and `secrets` say
    "TF_CONFIG": "the cluster and the task, as TensorFlow's own tools read it",
    "CUDA_VISIBLE_DEVICES": "the indices of the task's GPUs; empty: none",
    "CUDA_DEVICE_ORDER": "`PCI_BUS_ID`: indices count as nvidia-smi does",
    "PYTHONUNBUFFERED": "`1`: what is printed is in the log at once",
    "LAUNCH_RUN": "the run",
    "LAUNCH_ATTEMPT": "how often this task was started before, from 0",
    "LAUNCH_TASK_DIR": "the task's own folder on its host, where its logs are",
    "PYTHONPATH": "for a job that is a dotted module: where its code is",
    "http_proxy, https_proxy, grpc_proxy, all_proxy": "not set, nor in capitals: servers would hang",
}
PROXIES = ("http_proxy", "https_proxy", "grpc_proxy", "all_proxy")


def of_task(
    planned: Mapping[str, str], further: Mapping[str, str], attempt: int, folder: Path, gpus: Sequence[int]
) -> Dict[str, str]:
    """The whole environment of one attempt.

    Args:
      planned: of the plan.
      further: what the plan does not say: secrets, the cluster of a later formation.
      folder: the task's own.
      gpus: their indices.
    """
    return {
        **without_proxies(os.environ),
        **planned,
        **further,
        "LAUNCH_ATTEMPT": str(attempt),
        "LAUNCH_TASK_DIR": str(folder),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order in which nvidia-smi counts
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
    }


def without_proxies(env: Mapping[str, str]) -> Dict[str, str]:
    """An environment for a task: a proxy in it makes gRPC hang, even to localhost."""
    return {key: value for key, value in env.items() if key.lower() not in PROXIES}
