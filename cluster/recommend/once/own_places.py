"""Places that each worker moves by itself, in asynchronous training.

    worker   computes its gradient
    worker   takes its turn and notes the row of its batch, if the batch follows the progress of its shard
    servers  update the variables
    worker   moves the progress by its row, clears the row, gives its turn back

A row that a worker finds when it joins is of a batch whose gradient may have been applied, in whole or in part, by a
process that died. The batch is trained again: it may count twice, is never lost, and the log names it. What a dead
process has left on its way moves nothing, because the row is not there any more.

A worker that died keeps its shards for its next process. The others train one epoch more of their shards, then wait.

The chief saves while no worker is between noting and clearing: it takes every turn that it finds until then, and gives
each worker its turn when it has saved. A turn is an element of a queue, which waits without a thread. Each worker has a
queue of its own. So a turn that is lost with a worker blocks nobody else, and its next process gets another.
"""

import contextlib
import time
from typing import Any, Iterator, List, Optional, Sequence

import numpy as np

from cluster.recommend.once.shard_places import (
    BEGIN,
    END,
    EPOCH,
    FREE,
    IS_LAST,
    SHARD,
    STAMP,
    Places,
    tickets_of,
    variable,
)
from cluster.recommend.once.source import Beginning, Source
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept, locked, take_all
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.variables.masters import SCOPE

_APPLYING_S = 10.0  # how long a save waits for a worker that is applying a gradient
_POLL_S = 0.002


class Turns:
    """The turns of all workers to apply a gradient, made on the current device.

    Args:
      worker: the index of this one.

    Attributes:
      paused: a variable that is not saved: whether a save is under way, 1 or 0.
    """

    def __init__(self, workers: int, worker: int, is_chief: bool):
        self.paused = kept(f"{SCOPE}/shards/paused", [], tf.int64, 0)
        self._own = _queue(worker)
        self._all = [self._own if each == worker else _queue(each) for each in range(workers if is_chief else 0)]

    def take(self) -> Any:
        """Make the operation that waits for this worker's turn, and takes it."""
        return self._own.dequeue().op

    def give_back(self, number: Any) -> Any:
        """Make the operation that gives this worker's turn back; ``number`` is 1, or 0 for none."""
        return _put(self._own, number)

    def renew(self) -> Any:
        """Make the operation that gives this worker one turn, or none during a pause, whatever it had."""
        with tf.control_dependencies([take_all(self._own)]):
            return _put(self._own, 1 - self.paused.read_value())

    def collect(self) -> Any:
        """Chief: take all turns that are there; return how many each worker had, int32 [workers]."""
        return tf.stack([tf.size(take_all(each)) for each in self._all])

    def give(self, numbers: Any) -> List[Any]:
        """Chief: make the operations that give each worker so many turns, int64 [workers], 0 or 1."""
        return [_put(each, number) for each, number in zip(self._all, tf.unstack(numbers, len(self._all)))]


def _queue(worker: int) -> Any:
    return tf.FIFOQueue(-1, [tf.int64], [[]], shared_name=f"{SCOPE}/shards/turn_{worker}")


def _put(queue: Any, number: Any) -> Any:
    return queue.enqueue_many(tf.fill(tf.reshape(number, [1]), tf.constant(1, tf.int64)))


class OwnPlaces(Places):
    """The state of all shards, of which each worker moves its own.

    Attributes:
      close: the chief runs it before it gives the variables other values: no worker joins, and none notes a row.
      admit: the chief runs it after ``open``: workers may join.
      is_open: whether they may.
      is_paused: whether the chief saves, 1 or 0.
    """

    most_ahead = 1

    def __init__(self, source: Source, place: Any, task: Task, global_step: Any, epochs: Optional[int]):
        self._is_chief = task.is_chief
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
        """Make the operation that waits for this worker's turn, and notes its row; gradients may be applied after it.

        It fails unless ``life`` is the worker's newest, and the batch follows the progress of a shard that it has.

        Args:
          after: the gradients.
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
        follows = tf.reduce_all(tf.equal(self.progress.read_value()[row[SHARD]], row[EPOCH : BEGIN + 1]))
        is_own = tf.equal(self._owner.read_value()[row[SHARD]], self._worker)
        is_newest = tf.equal(self._lives.read_value()[self._worker], row[STAMP])
        is_right = tf.reduce_all([follows, is_own, is_newest])
        return [is_right, self._write(self._pending, self._worker, row, is_right)]

    def move_own(self, after: Sequence[Any]) -> Any:
        """Make the operation that moves the progress by this worker's row, and gives its turn back."""
        with tf.device(ps_device(0)):
            opened, (is_there, _) = locked(self._mutex, [self._row, *after], self._move_if_there)
            with tf.control_dependencies([opened]):
                return self._turns.give_back(tf.cast(is_there, tf.int64))

    def _move_if_there(self) -> List[Any]:
        row, is_last = self._row, self._row[IS_LAST]
        is_there = tf.reduce_all(tf.equal(self._pending.read_value()[self._worker], row))
        moved = tf.stack([row[EPOCH] + is_last, row[END] * (1 - is_last)])
        # First the progress: a shard that is free has it already.
        written = self._write(self.progress, row[SHARD], moved, is_there)
        with tf.control_dependencies([written]):
            is_free = tf.logical_and(is_there, is_last > 0)
            freed = self._write(self._owner, row[SHARD], tf.constant(FREE, tf.int64), is_free)
        with tf.control_dependencies([freed]):
            return [is_there, self._write(self._pending, self._worker, tf.fill([6], _FREE), is_there)]

    @staticmethod
    def _write(variable: Any, index: Any, value: Any, is_so: Any) -> Any:
        """Make the operation that writes one row of a variable if ``is_so``, and touches nothing otherwise."""
        number = tf.cast(is_so, tf.int32)
        indices = tf.reshape(tf.cast(index, tf.int64), [1])[:number]
        return tf.scatter_update(variable, indices, value[tf.newaxis][:number]).op

    # -- outside of steps

    def begin_life(self, session: Any, life: int) -> None:
        """Let the source's batches come, from where the servers are; from here on only ``life`` notes rows.

        Raises:
          tf.errors.DeadlineExceededError: the server does not answer in time.
          TrainingError: the checkpoint is of other files.
        """
        _, files, owner, own, progress = self._answer_to(session, life, self._found)
        self._check_files(files)
        if own[SHARD] != FREE:
            print(
                f"{_in_words(own)} may count twice: this worker's process before ended while it applied them",
                flush=True,
            )
        tickets = tickets_of(owner == self._worker, progress, int(own[SHARD]))
        self.source.begin(Beginning(False, tickets), lambda: self._ask(session, life))

    def _clear(self) -> List[Any]:
        cleared = tf.scatter_update(self._pending, self._worker, tf.fill([6], _FREE)).op
        with tf.control_dependencies([cleared]):
            return [self._turns.renew()]

    # -- saving

    def _make_pause(self, workers: int) -> None:
        def pause() -> List[Any]:
            with tf.control_dependencies([tf.assign(self._turns.paused, 1).op]):
                return [tf.maximum(self._lives.read_value(), 0)]  # a new tensor: the variable changes

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
        """Let workers join again that wait for the end of a save, as the chief that follows the one that saved."""
        if self._is_chief and session.run(self.is_paused):
            session.run(self._recall)

    @contextlib.contextmanager
    def paused(self, session: Any) -> Iterator[None]:
        """Chief: inside, no worker applies a gradient; the log names what a dead one may have applied in part."""
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
                    f"{_in_words(row)} may count twice in a run that goes on from the checkpoint that is saved now:"
                    f" worker {worker} has been applying them for more than {_APPLYING_S:.0f} s",
                    flush=True,
                )


_FREE = np.int64(FREE)
NOT_ADMITTED = "shards: expected a batch that follows the progress of a shard of its worker, found"


def _in_words(row: Any) -> str:
    return f"shards: records {row[BEGIN]} to {row[END] - 1} of shard {row[SHARD]}, epoch {row[EPOCH]},"
