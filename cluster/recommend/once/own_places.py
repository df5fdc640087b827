"""The progress of shards in asynchronous training, where each worker advances the progress of its own shards.

    worker   computes its gradient
    worker   takes its turn, and notes its batch in its row of ``pending`` if the batch continues a shard's progress
    servers  update the variables
    worker   advances the progress by the batch in its row, clears the row, gives its turn back

A worker that joins may find a batch in its row, because its previous process died. That process may have applied the
gradient of the batch in whole or in part. So the worker trains the batch again, and the log names the batch: it may
count twice, but is never lost. If operations of the dead process run later, they advance no progress, because the
row is cleared.

The shards of a dead worker wait for its next process. Meanwhile, the other workers train one more epoch of their
shards, then wait.

A *turn* is the permission of a worker to apply a gradient: an element of the worker's own queue. A wait for a turn
needs no thread. If a worker dies with its turn, no other worker is blocked, and its next process gets a new turn. The
chief saves only while all rows are clear. To reach this state, the chief takes every turn that it finds. After the
save, it gives each worker its turn.
"""

import contextlib
import time
from typing import Any, Iterator, List, Optional, Sequence

import numpy as np

from cluster.recommend.once.place_rows import (
    BEGIN,
    END,
    ENDED,
    EPOCH,
    FREE,
    IS_LAST,
    SHARD,
    STAMP,
    tickets_of,
    variable,
    write_if,
)
from cluster.recommend.once.shard_places import Places
from cluster.recommend.once.source import Beginning, Source
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import copied, kept, locked, take_all
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.variables.masters import SCOPE

_APPLYING_S = 10.0  # how long a save waits for a worker that is applying a gradient
_POLL_S = 0.002


class Turns:
    """The workers' turns (permissions to apply a gradient): one queue for each worker, created on the current device.

    Args:
      workers: the number of workers.
      worker: the index of this worker.
      is_chief: whether this worker is the chief, which needs the queues of all workers.

    Attributes:
      paused: a variable that is 1 during a save, otherwise 0; checkpoints do not contain it.
    """

    def __init__(self, workers: int, worker: int, is_chief: bool):
        self.paused = kept(f"{SCOPE}/shards/paused", [], tf.int64, 0)
        self._own = _queue(worker)
        self._all = [self._own if each == worker else _queue(each) for each in range(workers if is_chief else 0)]

    def take(self) -> Any:
        """Make the operation that waits for this worker's turn, and takes the turn."""
        return self._own.dequeue().op

    def give_back(self, number: Any) -> Any:
        """Make the operation that puts ``number`` turns, 0 or 1, back into this worker's queue."""
        return _put(self._own, number)

    def renew(self) -> Any:
        """Make the operation that replaces this worker's turns by one turn, or by none during a pause."""
        with tf.control_dependencies([take_all(self._own)]):
            return _put(self._own, 1 - self.paused.read_value())

    def collect(self) -> Any:
        """As the chief, take all turns that are in the queues; return the number from each queue, int32 [workers]."""
        return tf.stack([tf.size(take_all(each)) for each in self._all])

    def give(self, numbers: Any) -> List[Any]:
        """As the chief, make the operations that give each worker 0 or 1 turns, by ``numbers``, int64 [workers]."""
        return [_put(each, number) for each, number in zip(self._all, tf.unstack(numbers, len(self._all)))]


def _queue(worker: int) -> Any:
    return tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f"{SCOPE}/shards/turn_{worker}")


def _put(queue: Any, number: Any) -> Any:
    return queue.enqueue_many(tf.fill(tf.reshape(number, [1]), tf.constant(1, tf.int64)))


class OwnPlaces(Places):
    """The state of all shards in asynchronous training: each worker advances the progress of its own shards.

    Attributes:
      close: the operation that the chief runs before it initialises or restores the variables. Afterwards, no worker
        joins, and no worker notes a batch.
      admit: the operation that the chief runs after ``open``. Afterwards, workers may join.
      is_open: whether workers may join.
      is_paused: 1 while the chief saves, otherwise 0.
    """

    most_ahead = 1

    def __init__(self, source: Source, place: Any, task: Task, global_step: Any, epochs: Optional[int]):
        with tf.device(ps_device(0)):
            self._turns = Turns(task.num_workers, task.worker_index, task.is_chief)
            door = variable("door", [], 0)
        super().__init__(source, place, task, global_step, epochs)
        with tf.device(ps_device(0)):
            self.is_open = tf.greater(door.read_value(), 0)
            self.is_paused = self._turns.paused.read_value()
            self.close = tf.group(tf.assign(door, 0).op, self._lives.initializer)
            self.open = tf.group(self.open, self._turns.paused.initializer)
            self.admit = tf.assign(door, 1).op
            if task.is_chief:
                self._make_pause(task.num_workers)
        self.state = [*self.state, self._turns.paused, door]

    # -- in a step

    def note_own(self, life: Any, after: Sequence[Any]) -> Any:
        """Make the operation that waits for this worker's turn, and then notes the worker's batch in its row.

        Gradients may be applied after this operation. It fails if the worker has begun a newer life, or if the batch
        does not continue the progress of one of the worker's shards.

        Args:
          life: the number of this *life*, which is one session's reading of batches.
          after: the gradients; the operation waits until they are computed.
        """
        with tf.device(ps_device(0)):
            with tf.control_dependencies(after):
                self._row = tf.concat([[life], self.place], 0)
            with tf.control_dependencies([self._row]):
                taken = self._turns.take()
            opened, (is_right, _) = locked(self._mutex, [taken], self._note_if_right)
            with tf.control_dependencies([opened]):  # a process that died may have waited before the next one did
                passed_on = self._turns.give_back(1 - tf.cast(is_right, tf.int64))
            with tf.control_dependencies([passed_on]):
                return tf.debugging.Assert(is_right, [NOT_ADMITTED, self._row])

    def _note_if_right(self) -> List[Any]:
        row = self._row
        follows = tf.reduce_all(tf.equal(self.progress.read_value()[row[SHARD], :ENDED], row[EPOCH : BEGIN + 1]))
        is_own = tf.equal(self._owner.read_value()[row[SHARD]], self._worker)
        is_newest = tf.equal(self._lives.read_value()[self._worker], row[STAMP])
        is_right = tf.reduce_all([follows, is_own, is_newest])
        return [is_right, write_if(is_right, self._pending, self._worker, row)]

    def move_own(self, after: Sequence[Any]) -> Any:
        """Make the operation that adds this worker's noted batch to the progress, clears its row, and returns the turn.

        If the row no longer has this batch, the operation changes nothing.

        Args:
          after: the operations that apply the gradients; this operation waits for them.
        """
        with tf.device(ps_device(0)):
            opened, (is_there, _) = locked(self._mutex, [self._row, *after], self._move_if_there)
            with tf.control_dependencies([opened]):
                return self._turns.give_back(tf.cast(is_there, tf.int64))

    def _move_if_there(self) -> List[Any]:
        row, is_last = self._row, self._row[IS_LAST]
        is_there = tf.reduce_all(tf.equal(self._pending.read_value()[self._worker], row))
        is_free = tf.logical_and(is_there, is_last > 0)
        written = write_if(is_there, self.progress, row[SHARD], self._moved(row[tf.newaxis])[0])
        with tf.control_dependencies([written]):
            freed = write_if(is_free, self._owner, row[SHARD], tf.constant(FREE, tf.int64))
        with tf.control_dependencies([freed]):
            return [is_there, write_if(is_there, self._pending, self._worker, tf.fill([6], _FREE))]

    # -- outside of steps

    def begin_life(self, session: Any, life: int) -> None:
        """Start a *life*, one session's reading of the source's batches, from the progress that the servers store.

        From then on, the servers accept batches only from the life with the number ``life``.

        Raises:
          tf.errors.DeadlineExceededError: the server does not answer in time.
          TrainingError: the progress on the servers belongs to other files.
        """
        is_own, own, progress, *_ = self._read_places(session, life)
        if own[SHARD] != FREE:
            print(
                f"{_in_words(own)} may count twice: this worker's previous process ended while it applied them",
                flush=True,
            )
        tickets = tickets_of(is_own, progress, int(own[SHARD]))
        self.source.begin(Beginning(False, tickets), lambda: self._ask(session, life))

    def _clear(self) -> List[Any]:
        is_own = tf.equal(self._owner.read_value(), self._worker)
        left = tf.where(tf.logical_and(is_own, tf.logical_not(self._trainable())))[:, 0]  # trained, and not freed yet
        freed = tf.scatter_update(self._owner, left, tf.fill(tf.shape(left), _FREE)).op
        cleared = tf.scatter_update(self._pending, self._worker, tf.fill([6], _FREE)).op
        with tf.control_dependencies([freed, cleared]):
            return [self._turns.renew()]

    # -- saving

    def _make_pause(self, workers: int) -> None:
        def pause() -> List[Any]:
            with tf.control_dependencies([tf.assign(self._turns.paused, 1).op]):
                return [copied(self._lives)]

        def resume() -> List[Any]:
            with tf.control_dependencies([tf.assign(self._turns.paused, 0).op]):
                is_new = tf.not_equal(self._lives.read_value(), self._before)
                return self._turns.give(tf.cast(tf.logical_or(is_new, self._taken), tf.int64))

        def recall() -> List[Any]:
            with tf.control_dependencies([self._lives.initializer]):
                resumed = tf.assign(self._turns.paused, 0).op
            with tf.control_dependencies([resumed]):
                return self._turns.give(tf.ones([workers], tf.int64))

        self._before, self._taken = tf.placeholder(tf.int64, [workers]), tf.placeholder(tf.bool, [workers])
        opened, (lives,) = locked(self._mutex, [], pause)
        with tf.control_dependencies([opened]):
            self._pause = tf.identity(lives)
        self._resume, _ = locked(self._mutex, [self._before, self._taken], resume)
        self._recall, _ = locked(self._mutex, [], recall)
        collected = self._turns.collect()
        with tf.control_dependencies([collected]):
            self._seen = [collected, self._lives.read_value(), self._pending.read_value()]

    def recall_if_paused(self, session: Any) -> None:
        """As the chief, end a save that its previous process left unfinished, so that waiting workers can join."""
        if self._is_chief and session.run(self.is_paused):
            session.run(self._recall)

    @contextlib.contextmanager
    def paused(self, session: Any) -> Iterator[None]:
        """As the chief, enter a context in which no worker applies a gradient.

        If a worker does not finish its batch in time, for example because it has died, the log names this batch: it may
        count twice.
        """
        before = session.run(self._pause)
        taken = np.zeros(len(before), bool)
        try:
            self._wait_until_still(session, before, taken)
            yield
        finally:
            session.run(self._resume, {self._before: before, self._taken: taken})

    def _wait_until_still(self, session: Any, before: Any, taken: Any) -> None:
        """Take the turns of all workers; note in ``taken`` those that came."""
        until = time.monotonic() + _APPLYING_S
        while True:
            collected, lives, rows = session.run(self._seen)
            taken |= collected > 0
            is_still = (taken | (lives != before) | (lives == 0)) & (rows[:, SHARD] == FREE)
            if is_still.all():
                return
            if time.monotonic() > until:
                self._report_unsure(rows)
                return
            time.sleep(_POLL_S)

    @staticmethod
    def _report_unsure(rows: Any) -> None:
        for worker, row in enumerate(rows):
            if row[SHARD] != FREE:
                print(
                    f"{_in_words(row)} may count twice in a run that continues from the checkpoint of this save:"
                    f" worker {worker} has been applying them for more than {_APPLYING_S:.0f} s",
                    flush=True,
                )


_FREE = np.int64(FREE)
# No apostrophe: TensorFlow 1.15 escapes it in the error, in which a worker looks for this text.
NOT_ADMITTED = "shards: expected a batch that continues the progress of a shard of its worker, found"


def _in_words(row: Any) -> str:
    return f"shards: records {row[BEGIN]} to {row[END] - 1} of shard {row[SHARD]}, epoch {row[EPOCH]},"
