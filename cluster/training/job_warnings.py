"""Warnings about a job that trains, but perhaps not as intended.

The job's ``args`` record the keys that its functions read. No function reads a misspelt key.

If ``inputs`` gives each worker all examples instead of a shard, workers begin with the same batch. In its first step,
each worker also computes a digest of its batch, and writes it to ``ps:0``. The chief compares the digests of all
workers. It ignores a batch of equal examples, because a sharded dataset may have such batches. A restarted worker
writes no digest: its batch may be one that another worker has read.

A model with ``tf.xla.experimental.jit_scope`` asks XLA for what ``tf_compat.leave_out_xla`` prevents.
"""

import difflib
import functools
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Sequence, Set

from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.protocol.outcome import Outcome
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import loses_xla, tf
from cluster.task import TRAINERS
from cluster.training.callbacks import Callback, Step
from cluster.verify.digests import digest, flat


class ReadArgs(Dict[str, Any]):
    """A copy of the dictionary ``given``, which records the keys that are read.

    Code that uses the whole dictionary, such as ``{**args}``, a loop or ``json.dumps``, reads every key.

    ``asked``: the keys that were read, and the keys that were looked up but are missing.
    """

    def __init__(self, given: Mapping[str, Any]):
        super().__init__(given)
        self._given = list(given)
        self.asked: Set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of ``name``, or ``default``, and record that ``name`` was read."""
        self.asked.add(name)
        return super().get(name, default)

    def setdefault(self, name: str, default: Any = None) -> Any:
        """Return the value of ``name``, which becomes ``default`` if it is missing; record that ``name`` was read."""
        self.asked.add(name)
        return super().setdefault(name, default)

    def over(self, defaults: Mapping[str, Any]) -> "ReadArgs":
        """Return ``defaults`` with these values in their place; what is read there counts as read here."""
        found = ReadArgs({**defaults, **dict(dict.items(self))})
        found.asked = self.asked
        return found

    def unread(self) -> List[str]:
        """Return the keys that were not read yet."""
        return [name for name in self._given if name not in self.asked]


_READ_ONE = ("__getitem__", "__contains__", "pop")
_READ_ALL = ("__iter__", "keys", "values", "items", "copy")


def _recording(name: str) -> Callable[..., Any]:
    """Return the method of this name of a plain dictionary, which also records the keys that it reads."""
    method = getattr(dict, name)

    @functools.wraps(method)
    def recording(self: ReadArgs, *args: Any) -> Any:
        self.asked.update(map(str, args[:1] if name in _READ_ONE else dict.__iter__(self)))
        return method(self, *args)

    return recording


for _name in (*_READ_ONE, *_READ_ALL):
    setattr(ReadArgs, _name, _recording(_name))


class UnreadArgs(Callback):
    """The callback that warns about ``args`` that no function of a job has read."""

    def __init__(self, args: ReadArgs, job: Job):
        self._args, self._path = args, Path(job.path)
        self._known: Dict[str, bool] = {}

    def warnings(self) -> List[str]:
        """Return a warning for each key that no function has read, unless the job's file has its name in quotes.

        A name in the file may be read later: by ``predict`` when the model is exported, or by a generator of examples.
        """
        return [self._warning(name) for name in self._args.unread() if not self._is_in_file(name)]

    def _warning(self, name: str) -> str:
        near = difflib.get_close_matches(name, self._args.asked, 1)
        step = f"did you mean args.{near[0]}?" if near else "correct the name, or remove the key"
        return f"args.{name}: expected a key that the job reads, found one that no function has read; {step}"

    def _is_in_file(self, name: str) -> bool:
        if name not in self._known:
            self._known[name] = re.search(rf"""["']{re.escape(name)}["']""", self._text()) is not None
        return self._known[name]

    def _text(self) -> str:
        with suppress(OSError, UnicodeDecodeError):
            return self._path.read_text(encoding="utf-8")
        return ""


class Scopes(Callback):
    """The callback that warns about parts of the model that XLA was to compile, and does not."""

    def __init__(self, job: Job, graph: Any):
        self._found = [
            f"{job.place('model')}: expected no jit_scope, found one that compiles nothing: without XLA a run starts"
            " sooner; if you need XLA, set env.worker.TF_XLA_FLAGS to --tf_xla_auto_jit=0"
        ] * loses_xla(graph)

    def warnings(self) -> List[str]:
        """Return a warning about scopes for XLA; [] if there are none."""
        return self._found


_EXAMPLES, _VALUES = 16, 1 << 20  # of a batch that are looked at: the first step takes no longer for a large one
_MOST_NAMED = 3


class FirstBatches(Callback):
    """The callback that compares fingerprints of the workers' first batches, for the tasks in a pool.

    Args:
      batches: the batch of each task, as its dataset gives it; empty if each example counts once.
      is_first: whether this process is the task's first.
    """

    def __init__(self, job: Job, pool: Sequence[PoolMember], batches: Sequence[Mapping[str, Any]], is_first: bool):
        self._job, self._names = job, _names_of_workers(pool[0])
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

    def fetches(self, step: int) -> List[Any]:
        """Return the fingerprints to fetch with the worker's first step; [] for later steps."""
        return [self._number] if self._is_due else []

    def note(self, session: Any, step: Step, fetched: List[Any]) -> None:
        """Write the fetched fingerprints to ``ps:0``, where the chief reads them."""
        if fetched:
            session.run(self._leave, {self._own: fetched[0]})
            self._is_due = False

    def report(self, session: Any, step_time_ms: float) -> None:
        """As the chief, compare the fingerprints on ``ps:0``; do nothing once all workers were compared."""
        self._compare(session)

    def end(self, session: Any, outcome: Outcome) -> Outcome:
        """Compare the fingerprints for the last time."""
        self._compare(session)
        return outcome

    def _compare(self, session: Any) -> None:
        if self._is_open:
            numbers = dict(zip(*(column.tolist() for column in session.run(self._all))))
            self._same = [self._names[worker] for worker in same(numbers)]
            self._is_open = len(numbers) < len(self._names)

    def warnings(self) -> List[str]:
        """Return a warning about the workers that began with the same batch; [] if there are none."""
        if not self._same:
            return []
        more = len(self._same) - _MOST_NAMED
        named = ", ".join(self._same if more < 2 else [*self._same[:_MOST_NAMED], f"{more} more"])
        return [
            f"{self._job.place('inputs')}: expected inputs to begin with a different batch on each worker, found the"
            f" same on {named}; give each worker its part: data.shard(task.num_workers, task.worker_index)"
        ]


def _names_of_workers(member: PoolMember) -> List[str]:
    """Return the name of each worker of the member's cluster, in the order of ``Task.worker_index``."""
    cluster = member.task.cluster
    return [f"{role}:{index}" for role in TRAINERS for index in range(len(cluster.get(role, ())))]


def _on_its_host(member: PoolMember, batch: Mapping[str, Any]) -> Any:
    with tf.device(worker_device(member.task.role, member.task.index)):
        return fingerprint(batch)


def same(numbers: Mapping[int, int]) -> List[int]:
    """Return the largest group of workers that have the same number in ``numbers``; [] if all numbers differ.

    Workers with the number 0 belong to no group.
    """
    found: Dict[int, List[int]] = {}
    for worker, number in sorted(numbers.items()):
        if number:
            found.setdefault(number, []).append(worker)
    most: List[int] = max(found.values(), key=len, default=[])
    return most if len(most) > 1 else []


def fingerprint(batch: Mapping[str, Any]) -> Any:
    """Return a digest of ``batch``, an int64 scalar; 0 for a batch whose examples are all equal."""
    tensors = [each for each in flat(batch) if _is_plain(each)]
    seen = [part for each in tensors for part in (tf.shape(each), tf.reshape(each, [-1])[:_VALUES])]
    repeats = [
        _repeats(part, rows) for value in tf.nest.flatten(dict(batch)) for part, rows in _tensors_with_examples(value)
    ]
    return tf.where(tf.reduce_all(tf.stack([tf.constant(True), *repeats])), tf.zeros([], tf.int64), digest(seen))


def _is_plain(value: Any) -> bool:
    kind = value.dtype if isinstance(value, tf.Tensor) else None
    return kind is not None and (kind.is_floating or kind.is_integer or kind.is_complex or kind in (tf.bool, tf.string))


def _tensors_with_examples(value: Any) -> List[Any]:
    """Return pairs of a tensor and the number of examples.

    The examples are the same if and only if each tensor is one piece, as many times over.
    """
    if isinstance(value, tf.SparseTensor):
        rows = tf.cast(value.dense_shape[0], tf.int32)
        return [(value.indices[:, 1:], rows), (value.values, rows), (_counts_of_rows(value.indices[:, 0], rows), rows)]
    if isinstance(value, tf.RaggedTensor):
        rows = tf.cast(value.nrows(), tf.int32)
        return [(each, rows) for each in (*value.nested_row_lengths(), value.flat_values)]
    return [(value, tf.reduce_prod(tf.shape(value)[:1]))] if _is_plain(value) else []


def _counts_of_rows(rows: Any, number: Any) -> Any:
    """Return how often each of so many rows occurs."""
    return tf.math.unsorted_segment_sum(tf.ones_like(rows), rows, number)


def _repeats(value: Any, rows: Any) -> Any:
    """Return whether a tensor is one piece, ``rows`` times over; of a large one, the first pieces are looked at."""
    values = tf.reshape(value if not value.dtype.is_integer else tf.cast(value, tf.int64), [-1])
    size, few = tf.size(values) // tf.maximum(rows, 1), tf.minimum(rows, _EXAMPLES)
    pieces = tf.reshape(values[: few * size], [few, size])
    return tf.logical_and(tf.equal(tf.size(values), rows * size), tf.reduce_all(tf.equal(pieces, pieces[:1])))
