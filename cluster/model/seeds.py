"""The seed of a worker's graph."""

from typing import Any, Mapping

from cluster.runtime.tf_compat import tf
from cluster.task import Task


def set_seed(task: Task, args: Mapping[str, Any]) -> None:
    """Let random numbers of different workers differ; without a seed in ``args`` also those of different runs."""
    seed = args.get("seed")
    if seed is not None:
        tf.set_random_seed((int(seed) + 0x9E3779B1 * task.worker_index) % (1 << 31))
