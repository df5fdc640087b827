"""The environment variables of a task's process."""

from pathlib import Path
from typing import Dict, Mapping, Sequence

ENVIRONMENT = {  # of every task, beyond its agent's variables, `env` and `secrets`
    "TF_CONFIG": "Cluster and task, in TensorFlow's own format.",
    "CUDA_VISIBLE_DEVICES": "Indices of the task's GPUs; empty without a GPU.",
    "CUDA_DEVICE_ORDER": "`PCI_BUS_ID`: GPU indices are those of nvidia-smi.",
    "PYTHONUNBUFFERED": "`1`: printed lines reach the log at once.",
    "LAUNCH_RUN": "Full name of the run.",
    "LAUNCH_ATTEMPT": "Number of earlier attempts of this task, from 0.",
    "LAUNCH_TASK_DIR": "Folder of the task on its host, with its logs.",
    "LAUNCH_CONTAINER": "Name of the attempt's container; unset outside a container.",
    "TMPDIR": "Folder for temporary files, gone with the attempt; unset in podman and docker. `env` may set another.",
    "LAUNCH_JOB_DIR": "Folder of the job or program on the launcher's machine, of which the task has a copy.",
    "GLIBC_TUNABLES": "`glibc.malloc.hugetlb=1` for a job's ps, unless `env` sets it: large memory in large pages.",
    "PYTHONPATH": "Folder of the code, for a job that is a dotted module.",
    "http_proxy, https_proxy, grpc_proxy, all_proxy": "Unset, also in capitals: a proxy makes servers hang.",
}


def own_variables(
    planned: Mapping[str, str], further: Mapping[str, str], attempt: int, folder: Path, gpus: Sequence[int]
) -> Dict[str, str]:
    """Return the variables of one attempt, in addition to the variables of its agent.

    Args:
      planned: the variables of the plan.
      further: values that the plan lacks: secrets, the cluster of a later formation.
      folder: the task's folder.
      gpus: the indices of the task's GPUs.
    """
    return {
        **planned,
        **further,
        "LAUNCH_ATTEMPT": str(attempt),
        "LAUNCH_TASK_DIR": str(folder),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of nvidia-smi
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
    }
