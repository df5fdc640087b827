"""Values of a worker's step that no other graph computes once more. The chief's graphs get them through placeholders.

random numbers      every graph draws others
rows of tables      only the servers have them
a batch of shards   the servers give it to whichever worker asks first

Each copy of the model has numbers and rows of its own, in the order in which the model makes them.
"""

from contextlib import contextmanager
from typing import Any, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence

from cluster import embedding
from cluster.errors import TrainingError
from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.sharing.variables import Sharing
from cluster.task import Task
from cluster.verify.digests import flat
from cluster.verify.randomness import draws


class Given(NamedTuple):
    """The tensors of one worker: of its batch, flat, none if the chief reads it; and of each copy of the model."""

    batch: List[Any]
    copies: List[List[Any]]


class Givens:
    """Queues on ``ps:0``, one for each worker, in the current graph.

    Args:
      copies: the tensors of each copy of this worker's model.
      batch: of shards; None if the chief can read the batches of all workers.

    Attributes:
      batch: the same.
      send: the operation by which this worker reports those of its step; None without any.
      received: of each worker a ``Given``, waits until every worker has reported (chief only); empty without any.
    """

    def __init__(self, task: Task, copies: Sequence[Sequence[Any]], batch: Optional[Mapping[str, Any]]):
        self.batch, self._copies, self._in_batch = batch, copies, flat(batch) if batch else []
        tensors = [*self._in_batch, *(each for copy in copies for each in copy)]
        self._types = [each.dtype for each in tensors]
        self.send: Any = None
        self.received: List[Given] = []
        if not tensors:
            return
        with tf.device(ps_device(0)):
            self.send = self._queue(task.worker_index).enqueue(tensors)
            if task.is_chief:
                self.received = [self._dequeued(worker) for worker in range(task.num_workers)]

    def _queue(self, worker: int) -> Any:
        return tf.FIFOQueue(-1, self._types, shared_name=f"verify/givens_of_{worker}")

    def _dequeued(self, worker: int) -> Given:
        found = self._queue(worker).dequeue()
        values = iter(found if isinstance(found, (list, tuple)) else [found])
        batch = [next(values) for _ in self._in_batch]
        return Given(batch, [[next(values) for _ in copy] for copy in self._copies])


def given_to(sharing: Sharing, number: int, needed: Iterable[Any]) -> List[List[Any]]:
    """Return what each of the first ``number`` copies of the model has, in a worker's graph.

    Args:
      needed: the operations behind losses and gradients.
    """
    operations, needed = tf.get_default_graph().get_operations(), set(needed)
    rows = {each.rows for each in embedding.lookups(tf.get_default_graph())}
    copies = [[operations[index] for index in copy] for copy in sharing.copies[:number]]
    return [_given([op for op in copy if op in needed], [op for op in copy if op in rows & needed]) for copy in copies]


def _given(ops: Sequence[Any], rows: Sequence[Any]) -> List[Any]:
    return [*(op.outputs[0] for op in rows), *(each for op in ops if draws(op) for each in op.outputs)]


class Holes:
    """Placeholders in a graph of the chief for what workers have."""

    def __init__(self) -> None:
        self._rows: List[Any] = []

    @property
    def number_of_lookups(self) -> int:
        """Return how many placeholders are for rows of tables."""
        return len(self._rows)

    @contextmanager
    def rows(self) -> Iterator[None]:
        """Let lookups in tables have placeholders inside, in the current graph."""
        with embedding.rows_from(self._row):
            yield

    def _row(self, table: embedding.Table, ids: Any) -> Any:
        self._rows.append(tf.placeholder(tf.float32, [None, table.width]))
        return self._rows[-1]

    def of(self, ops: Iterable[Any], needed: Iterable[Any]) -> List[Any]:
        """Return the placeholders of one copy of the model, in the order of the values of ``given_to``.

        Random numbers get theirs here; whatever takes them takes the placeholders.

        Args:
          ops: of the copy, in their order.
          needed: the operations behind losses and gradients.
        """
        needed, rows = set(needed), {each.op for each in self._rows}
        mine = [op for op in ops if op in needed]
        found = _given(mine, [op for op in mine if op in rows])
        return [each if each.op in rows else _stand_in(each) for each in found]


def _stand_in(drawn: Any) -> Any:
    with tf.control_dependencies(None):
        hole = tf.placeholder(drawn.dtype, drawn.shape)
    for op in drawn.consumers():
        for index, each in enumerate(op.inputs):
            if each is drawn:
                op._update_input(index, hole)
    return hole


def refuse_other_number(holes: Sequence[Sequence[Any]], given: Sequence[Given]) -> None:
    """Refuse copies of the model that have other random numbers, or lookups, than those of the chief's graph.

    Args:
      holes: the placeholders of each copy of all workers.
      given: by each worker; empty where none has any.

    Raises:
      TrainingError: there are some.
    """
    here = [len(copy) for copy in holes]
    there = [len(copy) for worker in given for copy in worker.copies] or [0] * len(here)
    if here != there:
        raise TrainingError(
            "expected every call of model to draw random numbers, and to look up rows, as often as the others, found"
            f" {sorted({*here, *there})} times in copies of it; launch verify cannot compare them"
        )
