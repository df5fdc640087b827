"""How many operations the graph of a chief and of another worker has, and how long it takes to build: make bench-graphs

36.5 MB in 47 variables of odd shapes, trained with momentum, in as many slices as a network of each kind is given.
"""

import time
from types import ModuleType
from typing import Any, Dict, List, NamedTuple

from cluster.job import Job
from cluster.model import device_pool
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from cluster.variables.placement import FEWEST_SLICES, MOST_SLICES
from tests.benchmarks.speed import job
from tests.benchmarks.speed.cases import CASES, WAYS

SHAPES = WAYS["ours"].shapes(CASES["two-odd"])
CLUSTERS = ((2, 2), (4, 4), (8, 8), (16, 64))
NETWORKS = {"slow": MOST_SLICES, "quick": FEWEST_SLICES}


class Size(NamedTuple):
    """Of one worker's graph; ``pushes`` is what a step gives to the servers one by one."""

    operations: int
    pushes: int
    seconds: float


def size(ps: int, workers: int, index: int, slices: int, of: List[List[int]]) -> Size:
    """Builds the graph of one worker."""
    ports = iter(range(1024, 65536))
    roles = {"ps": ps, "worker": workers}
    cluster = {role: [f"127.0.0.1:{next(ports)}" for _ in range(number)] for role, number in roles.items()}
    train = Train.from_dict({"steps": 1, "batch_size": 8})
    devices = device_pool.own_pool(Task("worker", index, cluster), train)
    task = device_pool.as_client(devices[0].task, devices)
    args: Dict[str, Any] = {"shapes": of}
    began = time.monotonic()
    replica = Builder(_job().with_args(args), task, train, args, devices, lambda measured: slices).build()
    return Size(len(replica.graph.get_operations()), len(replica.buckets), time.monotonic() - began)


def _job() -> Job:
    module = ModuleType(job.__name__)
    vars(module).update(vars(job), optimizer=lambda args: tf.train.MomentumOptimizer(0.1, 0.9))
    return Job.from_module(module)


def main() -> None:
    """Prints a row for each cluster and network."""
    print("| ps | workers | network | pushes | chief's operations | built in s | another worker's | built in s |")
    print("|---:|---:|---|---:|---:|---:|---:|---:|")
    size(2, 2, 0, FEWEST_SLICES, SHAPES)  # what TensorFlow loads when it is used first
    for ps, workers in CLUSTERS:
        for network, slices in NETWORKS.items():
            chief, worker = (size(ps, workers, index, slices, SHAPES) for index in (0, 1))
            print(
                f"| {ps} | {workers} | {network} | {chief.pushes} | {chief.operations:,} | {chief.seconds:.1f} |"
                f" {worker.operations:,} | {worker.seconds:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
