"""The environment variables of a task's process."""

import os
from pathlib import Path
from typing import Dict, Mapping, Sequence

from cluster.protocol import progress_lines
from cluster.protocol.env_values import on_this_host

ENVIRONMENT = {  # of every task, beyond its agent's variables, `env` and `secrets`
    "TF_CONFIG": "Cluster and task, in TensorFlow's own format.",
    "RANK": "Rank among the chief and the workers, the chief first; unset for a ps and an evaluator.",
    "WORLD_SIZE": "Number of these ranks. With `elastic`, none of these five variables is set.",
    "LOCAL_RANK": "Rank among the chief and the workers of the task's host; unset for a ps and an evaluator.",
    "MASTER_ADDR": "Address of the task of rank 0, without its port.",
    "MASTER_PORT": "Port on that host that no task and no agent of the run uses.",
    "CUDA_VISIBLE_DEVICES": "Indices of the task's GPUs; empty without a GPU.",
    "CUDA_DEVICE_ORDER": "`PCI_BUS_ID`: GPU indices are those of nvidia-smi.",
    "PYTHONUNBUFFERED": "`1`: printed lines reach the log at once.",
    "LAUNCH_RUN": "Full name of the run.",
    "LAUNCH_ATTEMPT": "Number of earlier attempts of this task, from 0.",
    "LAUNCH_TASK_DIR": "Folder of the task on its host, with its logs.",
    "LAUNCH_PROGRESS": "File of the task for lines of JSON with `step`, `loss` and `rate`, which `status` shows.",
    "LAUNCH_CONTAINER": "Name of the attempt's container; unset outside a container.",
    "TMPDIR": "Folder for temporary files, gone with the attempt; unset in podman and docker. `env` may set another.",
    "LAUNCH_JOB_DIR": "Folder of the job or program on the launcher's machine, of which the task has a copy.",
    "GLIBC_TUNABLES": "`glibc.malloc.hugetlb=1` for a job's ps, unless `env` sets it: large memory in large pages.",
    "PYTHONPATH": "Folder of the code, for a job that is a dotted module. For a program under `command`, a folder"
    " with which Python can [write its stacks](faults.md#a-quiet-task) comes first.",
    "http_proxy, https_proxy, grpc_proxy, all_proxy": "Unset, also in capitals: a proxy makes servers hang.",
}


def own_variables(
    planned: Mapping[str, str],
    further: Mapping[str, str],
    attempt: int,
    folder: Path,
    gpus: Sequence[int],
    outside: Mapping[str, str],
) -> Dict[str, str]:
    """Return the environment variables of one attempt, in addition to those of its agent.

    Args:
      planned: the variables of the plan, which may refer to other variables (``env_values``).
      further: variables that the plan lacks, such as secrets or another cluster; their values stay unchanged.
      folder: the task's folder.
      gpus: the indices of the task's GPUs.
      outside: the variables that the task inherits: the agent's, or none in a container, whose image's variables are
        not known.

    Raises:
      OSError: a value is longer than Linux allows.
    """
    attempts = {
        "LAUNCH_ATTEMPT": str(attempt),
        "LAUNCH_TASK_DIR": str(folder),
        "LAUNCH_PROGRESS": str(folder / progress_lines.FILE),
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of nvidia-smi
        "CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)),
    }
    given = {name: value for name, value in planned.items() if name not in attempts}
    return {**on_this_host(given, {**outside, **attempts}), **further, **attempts}


STACKS_FOLDER = Path(__file__).parent / "program_stacks"  # its module lets a Python program write its stacks


def writes_stacks(argv: Sequence[str]) -> bool:
    """Return whether a task writes its stacks by itself, as every job does."""
    return "jobs.main" in argv[:3]


def with_stacks(env: Mapping[str, str]) -> Dict[str, str]:
    """Return ``env`` with ``STACKS_FOLDER`` first in PYTHONPATH, so that Python imports the folder's module."""
    paths = [str(STACKS_FOLDER), env.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))]
    return {**env, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
