"""Choose the devices of one client's graph: its own task's, or those of every worker.

Between graphs every worker is a client with a graph for its own devices. In-graph, the chief is the only client: its
one graph has towers on the devices of all workers. The workers only serve, as parameter servers do.
"""

from dataclasses import replace
from typing import Any, List, NamedTuple, Sequence

from cluster.model.nccl import refuse_without_nccl
from cluster.runtime import server
from cluster.runtime.devices import gpus_of, tower_units, units_among
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import listens, wait_for
from cluster.task import Task, Train

IN_GRAPH = "in-graph"


class Member(NamedTuple):
    """A task whose devices compute; its ``batch_size`` is that of all its towers together, in a whole step."""

    task: Task
    units: List[str]  # the first device of each of its towers


def devices_of(settings: Train) -> int:
    """Return the number of devices that the towers of this task take."""
    return len(tower_units(settings)) * settings.stages


def own_devices(task: Task, settings: Train) -> List[Member]:
    """The crew of a client that uses nothing but its own devices."""
    return [_member(task, settings, tower_units(settings))]


def gathered(task: Task, settings: Train, serving: Any) -> List[Member]:
    """The crew of ``task``, itself first. In-graph it waits until every worker listens, and asks for their GPUs.

    Raises:
      TaskError: one of them has fewer GPUs than its towers need, or towers that ``train.tower_sum`` cannot add up.
      TimeoutError: one of them does not listen.
    """
    own = own_devices(task, settings)
    if settings.tower_sum == "nccl":
        refuse_without_nccl(own[0].units)
    if settings.replication != IN_GRAPH:
        return own
    workers = [replace(task, role="worker", index=index) for index in range(len(task.cluster.get("worker", ())))]
    crew = [*own, *(Member(worker, []) for worker in workers if worker != task)]
    wait_for_lent(crew)
    devices = _devices(task, serving, lent(crew))
    return [*own, *(_member(other, settings, units_among(gpus_of(other, devices), settings)) for other in lent(crew))]


def _devices(task: Task, serving: Any, others: Sequence[Task]) -> List[Any]:
    with tf.Graph().as_default() as graph:
        ready = tf.no_op()
    session = server.connect(task, serving, graph, others)
    session.run(ready)  # waits for every server; listing alone would do so with Python's threads held up
    return list(session.list_devices())


def lent(crew: Sequence[Member]) -> List[Task]:
    """The tasks of a crew that only serve its client."""
    return [member.task for member in crew[1:]]


def wait_for_lent(crew: Sequence[Member]) -> None:
    """Wait until the servers of a crew's lent tasks listen.

    Raises:
      TimeoutError: one of them does not.
    """
    for task in lent(crew):
        address = task.cluster[task.role][task.index]
        wait_for(f"{task.name} at {address}", lambda address=address: listens(address), poll_s=0.05)  # type: ignore[misc]


def as_client(task: Task, crew: Sequence[Member]) -> Task:
    """The task as which a client trains with its crew: in-graph, as the only worker of its cluster."""
    worker_batch_size = sum(member.task.batch_size for member in crew)
    if len(crew) == 1:
        return replace(task, batch_size=worker_batch_size)
    own = {"ps": task.cluster["ps"], task.role: [task.cluster[task.role][task.index]]}
    return replace(task, cluster=own, batch_size=worker_batch_size)


def _member(task: Task, settings: Train, units: List[str]) -> Member:
    worker_batch_size = settings.tower_batch_size * settings.accumulate * len(units)
    return Member(replace(task, batch_size=worker_batch_size), units)
