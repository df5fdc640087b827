"""Choose the devices of one client's graph: the devices of its own task, or those of every worker.

With between-graph replication every worker is a client with a graph for its own devices. With in-graph replication the
chief is the only client: its one graph has towers on the devices of all workers. The other workers only serve, as
parameter servers do.
"""

from dataclasses import replace
from typing import Any, List, NamedTuple, Sequence

from cluster.runtime import server
from cluster.runtime.devices import devices_among, gpus_of, tower_devices
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for_server
from cluster.task import Task, Train

IN_GRAPH = "in-graph"


class PoolMember(NamedTuple):
    """A task whose devices compute; ``task.batch_size`` counts the examples of all its towers in a whole step."""

    task: Task
    devices: List[str]  # the first device of each of its towers


def count_devices(settings: Train) -> int:
    """Return the number of devices that the towers of one task use."""
    return len(tower_devices(settings)) * settings.stages


def own_pool(task: Task, settings: Train) -> List[PoolMember]:
    """Return the device pool of a client that uses only its own devices."""
    return [_member(task, settings, tower_devices(settings))]


def gather_pool(task: Task, settings: Train, serving: Any) -> List[PoolMember]:
    """Return the device pool of the client ``task``; the first member of the pool is ``task`` itself.

    With in-graph replication the function waits until every worker listens, and asks the workers for their GPUs.

    Args:
      serving: the TensorFlow server of ``task``.

    Raises:
      TaskError: a member has fewer GPUs than its towers need.
      TimeoutError: a worker does not listen.
    """
    own = own_pool(task, settings)
    if settings.replication != IN_GRAPH:
        return own
    workers = [replace(task, role="worker", index=index) for index in range(len(task.cluster.get("worker", ())))]
    pool = [*own, *(PoolMember(worker, []) for worker in workers if worker != task)]
    wait_for_lent_tasks(pool)
    devices = _devices(task, serving, lent_tasks(pool))
    others = [(other, gpus_of(other, devices)) for other in lent_tasks(pool)]
    return [*own, *(_member(other, settings, devices_among(gpus, settings)) for other, gpus in others)]


def _devices(task: Task, serving: Any, others: Sequence[Task]) -> List[Any]:
    with tf.Graph().as_default() as graph:
        ready = tf.no_op()
    session = server.connect(task, serving, graph, others)
    session.run(ready)  # waits for every server; listing alone would do so with Python's threads held up
    return list(session.list_devices())


def lent_tasks(pool: Sequence[PoolMember]) -> List[Task]:
    """Return the tasks in ``pool`` that only lend their devices to its client."""
    return [member.task for member in pool[1:]]


def wait_for_lent_tasks(pool: Sequence[PoolMember]) -> None:
    """Wait until the TensorFlow servers of ``lent_tasks(pool)`` listen.

    Raises:
      TimeoutError: a server does not listen in time.
    """
    for task in lent_tasks(pool):
        wait_for_server(task.name, task.cluster[task.role][task.index])


def as_client(task: Task, pool: Sequence[PoolMember]) -> Task:
    """Return ``task`` as a client that trains with the devices of ``pool``, and with the batch size of all members.

    With in-graph replication the client is the only worker of its cluster.
    """
    worker_batch_size = sum(member.task.batch_size for member in pool)
    if len(pool) == 1:
        return replace(task, batch_size=worker_batch_size)
    own = {"ps": task.cluster["ps"], task.role: [task.cluster[task.role][task.index]]}
    return replace(task, cluster=own, batch_size=worker_batch_size)


def _member(task: Task, settings: Train, devices: List[str]) -> PoolMember:
    worker_batch_size = settings.tower_batch_size * settings.accumulate * len(devices)
    return PoolMember(replace(task, batch_size=worker_batch_size), devices)
