"""The spec of a run with ``--local``: all hosts of a file on this machine, under their own names."""

import os
import shutil
from dataclasses import replace
from typing import Any, List, Optional, Sequence

from cluster.protocol.settings import Limits
from cluster.spec.model import Spec
from cluster.task import TRAINERS


def localised(
    spec: Spec, ports: Sequence[int], lead_ports: Sequence[int] = (), master_port: Optional[int] = None
) -> Spec:
    """Return ``spec`` with every host on this machine, without GPUs and with the same towers.

    Tasks of several hosts share this machine's processors, so no task is limited to some processors or to a NUMA node.

    The hosts keep their names. The real hosts may share this user's home, so the files of a local run lie in a separate
    working folder. The tasks' Python is the launcher's own, so no environment is set up.

    Args:
      ports: a free port for each task.
      lead_ports: a free port for each host.
      master_port: a free port for the program of rank 0.
    """
    tasks = tuple(
        replace(task, address=f"localhost:{port}", port=port, gpus=(), python=None, limits=_limits(task.limits))
        for task, port in zip(spec.tasks, ports)
    )
    return replace(
        spec, tasks=tasks, python=None, before=(), after=(), setup=None, train=replace(spec.train, towers=towers(spec)),
        local=True, lead_ports=dict(zip(spec.hosts, lead_ports)), workdir=spec.local_workdir,
        master_port=master_port,
    )  # fmt: skip


def _limits(limits: Optional[Limits]) -> Optional[Limits]:
    return limits and replace(limits, processors=None, numa_node=None)


def towers(spec: Spec) -> Any:
    """Return ``train.towers``; if the file alone determines it, a number replaces ``auto``.

    This number is the GPUs of a worker divided by ``train.stages``, at least 1.
    """
    chosen = [task.gpus for task in spec.tasks if task.role in TRAINERS]
    counts = {len(gpus) for gpus in chosen if not isinstance(gpus, str)}
    if spec.train.towers != "auto" or len(counts) != 1:
        return spec.train.towers
    return max(1, counts.pop() // spec.train.stages)


def other_pythons(spec: Spec, own: str) -> List[str]:
    """Return the Pythons that a file names for its hosts, except the program ``own``."""
    named = dict.fromkeys(filter(None, [spec.python, *(task.python for task in spec.tasks)]))
    return [each for each in named if not _is_same_program(each, own)]


def _is_same_program(one: str, other: str) -> bool:
    found = shutil.which(os.path.expanduser(one))
    return found is not None and os.path.abspath(found) == os.path.abspath(other)
