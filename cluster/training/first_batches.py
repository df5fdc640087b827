"""Find workers that begin with the same batch: their ``inputs`` gives each all examples, not a shard.

Each worker makes a number of its first batch together with its first step, and leaves it on ``ps:0``, where the chief
compares the numbers of all. A batch of one example, many times over, is compared with no other: a sharded dataset may
have such batches. A worker that was started again leaves no number: it may read again what another one has read.
"""

from typing import Any, Dict, List, Mapping, Sequence

from cluster.job import Job
from cluster.model.device_pool import Member
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.task import TRAINERS
from cluster.verify.digests import digest, flat

_EXAMPLES, _VALUES = 16, 1 << 20  # of a batch that are looked at: the first step takes no longer for a large one
_MOST_NAMED = 3


class FirstBatches:
    """The number of the first batch of each task in a pool, in the current graph.

    Args:
      batches: of each task, as its dataset gives them; none where each example counts once.
      is_first: whether this process is the task's first.
    """

    def __init__(self, job: Job, pool: Sequence[Member], batches: Sequence[Mapping[str, Any]], is_first: bool):
        self._job, self._names = job, _names(pool[0])
        self._is_chief = pool[0].task.is_chief
        is_useful = len(self._names) > 1 and bool(batches)
        self._is_due, self._is_open = is_useful and is_first, is_useful and self._is_chief
        self._same: List[str] = []
        if is_useful:
            self._number = tf.stack([_on_its_host(member, batch) for member, batch in zip(pool, batches)])
            self._make_table([member.task.worker_index for member in pool])

    def _make_table(self, workers: Sequence[int]) -> None:
        self._own = tf.placeholder(tf.int64, [len(workers)])
        with tf.device(ps_device(0)):
            table = tf.raw_ops.MutableHashTableV2(
                key_dtype=tf.int64, value_dtype=tf.int64, shared_name=f"first_batches_of_{len(self._names)}_workers"
            )
            keys = tf.constant(workers, tf.int64)
            self._leave = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=keys, values=self._own)
            self._all = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.int64)

    @property
    def fetches(self) -> List[Any]:
        """Return what to fetch with the next step: nothing after the first."""
        return [self._number] if self._is_due else []

    def note(self, session: Any, fetched: List[Any]) -> None:
        """Take what was fetched off the list, and leave it where the chief finds it."""
        if self._is_due:
            session.run(self._leave, {self._own: fetched.pop(0)})
            self._is_due = False

    def compare(self, session: Any) -> None:
        """Chief: compare the numbers that are there, until those of all workers have been."""
        if self._is_open:
            numbers = dict(zip(*(column.tolist() for column in session.run(self._all))))
            self._same = [self._names[worker] for worker in same(numbers)]
            self._is_open = len(numbers) < len(self._names)

    def warnings(self) -> List[str]:
        """Return a sentence about the workers that began with the same batch; nothing where none did."""
        if not self._same:
            return []
        more = len(self._same) - _MOST_NAMED
        named = ", ".join(self._same if more < 2 else [*self._same[:_MOST_NAMED], f"{more} more"])
        return [
            f"{self._job.place('inputs')}: expected inputs to begin with another batch on each worker, found the same"
            f" on {named}; give each its part: data.shard(task.num_workers, task.worker_index)"
        ]


def _names(member: Member) -> List[str]:
    """Return the name of each worker of the member's cluster, in the order of ``Task.worker_index``."""
    cluster = member.task.cluster
    return [f"{role}:{index}" for role in TRAINERS for index in range(len(cluster.get(role, ())))]


def _on_its_host(member: Member, batch: Mapping[str, Any]) -> Any:
    with tf.device(worker_device(member.task.role, member.task.index)):
        return fingerprint(batch)


def same(numbers: Mapping[int, int]) -> List[int]:
    """Return the most workers that have one number, if it is of more than one; 0 is no number."""
    found: Dict[int, List[int]] = {}
    for worker, number in sorted(numbers.items()):
        if number:
            found.setdefault(number, []).append(worker)
    most: List[int] = max(found.values(), key=len, default=[])
    return most if len(most) > 1 else []


def fingerprint(batch: Mapping[str, Any]) -> Any:
    """Return a number of a batch, int64 []; 0 for one whose examples are all the same."""
    tensors = [each for each in flat(batch) if _is_plain(each)]
    seen = [part for each in tensors for part in (tf.shape(each), tf.reshape(each, [-1])[:_VALUES])]
    repeats = [_repeats(part, rows) for value in tf.nest.flatten(dict(batch)) for part, rows in _parts(value)]
    return tf.where(tf.reduce_all(tf.stack([tf.constant(True), *repeats])), tf.zeros([], tf.int64), digest(seen))


def _is_plain(value: Any) -> bool:
    kind = value.dtype if isinstance(value, tf.Tensor) else None
    return kind is not None and (kind.is_floating or kind.is_integer or kind.is_complex or kind in (tf.bool, tf.string))


def _parts(value: Any) -> List[Any]:
    """Return pairs of a tensor and the number of examples.

    The examples are the same if and only if each tensor is one piece, as many times over.
    """
    if isinstance(value, tf.SparseTensor):
        rows = tf.cast(value.dense_shape[0], tf.int32)
        return [(value.indices[:, 1:], rows), (value.values, rows), (_counts(value.indices[:, 0], rows), rows)]
    if isinstance(value, tf.RaggedTensor):
        rows = tf.cast(value.nrows(), tf.int32)
        return [(each, rows) for each in (*value.nested_row_lengths(), value.flat_values)]
    return [(value, tf.reduce_prod(tf.shape(value)[:1]))] if _is_plain(value) else []


def _counts(rows: Any, number: Any) -> Any:
    """Return how often each of so many rows occurs."""
    return tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, number)


def _repeats(value: Any, rows: Any) -> Any:
    """Return whether a tensor is one piece, ``rows`` times over; of a large one, the first pieces are looked at."""
    values = tf.reshape(value if not value.dtype.is_integer else tf.cast(value, tf.int64), [-1])
    size, few = tf.size(values) // tf.maximum(rows, 1), tf.minimum(rows, _EXAMPLES)
    pieces = tf.reshape(values[: few * size], [few, size])
    return tf.logical_and(tf.equal(tf.size(values), rows * size), tf.reduce_all(tf.equal(pieces, pieces[:1])))
