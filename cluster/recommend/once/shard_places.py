"""The progress of each shard, on ``ps:0``: saved and restored with the variables, advanced as part of a step.

    progress   for each shard: the number of finished epochs, and of trained records in the next one; in checkpoints
    owner      for each shard: the worker that trains it, or FREE; not in checkpoints: ``open`` frees all shards
    pending    for each worker: the position (shard, epoch, records) of its batch in this step
    begun      the step that is being applied, or the last step that was applied
    lives      for each worker: the number of its newest life (a session's reading); older lives get no shards

One step of N workers:

    worker i   writes its row of ``pending``, then sends its gradient
    chief      waits for all gradients, checks that every row continues the progress, and notes the step as begun
    chief      updates the variables, advances the progress by all rows, and counts the step

If a chief dies after it has noted a step and before it has counted the step, the step is half done, and ``is_torn`` is
true. Then variables and progress are restored together, from the newest checkpoint. The position of a batch determines
its records. So if a worker dies after it has written its row, its next process sends the gradient of the same batch.
The servers use each gradient once.
"""

import time
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from cluster.errors import TrainingError
from cluster.recommend.once.shard_files import NOTHING, Ticket
from cluster.recommend.once.source import Beginning, Source
from cluster.recommend.tables.row_keys import mix
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import copied, kept, locked
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.variables.masters import SCOPE

FREE = -1  # in place of an owner
_FOREVER = 1 << 40  # epochs, where their number is not limited
STAMP, SHARD, EPOCH, BEGIN, END, IS_LAST = range(6)  # of a row of pending
_OTHERS_MS = 60_000  # how long a question for places or a shard may take


class Places:
    """The state of all shards, in the graph of one worker.

    Args:
      source: the batches of the worker.
      place: the ``shard_files.ShardPlace`` of a step's batch, int64 [5]. A session that fetches it consumes the batch.
      task: the task of the worker.
      global_step: the global step on ``ps:0``.
      epochs: how often each shard is trained; None for no limit.

    Attributes:
      saved: the variables in checkpoints; the chief initialises them.
      state: the variables that are not in checkpoints; ``open`` initialises them.
      open: the operation that frees all shards. The chief runs it when ``saved`` have their values, and before other
        workers join.
      has_ended: whether every shard is trained in all epochs, and the step with the last record is counted.
      is_torn: whether a step began but was not counted; valid only while no chief takes steps.
      most_ahead: a worker gets only shards that are at most this number of epochs ahead of the shard with the fewest
        finished epochs; None for no limit.
    """

    most_ahead: Optional[int] = None  # in a synchronous step no worker goes on without the others

    def __init__(self, source: Source, place: Any, task: Task, global_step: Any, epochs: Optional[int]):
        self.source, self.place, self._global_step = source, place, global_step
        self._worker, self._epochs = task.worker_index, _FOREVER if epochs is None else epochs
        reader = source.reader
        self._number, self._files_digest = len(reader.shards), reader.digest()
        with tf.device(ps_device(0)):
            self.progress = variable("progress", [self._number, 2], 0)
            self._files = variable("files", [], self._files_digest)
            self._owner = variable("owner", [self._number], FREE)
            self._pending = variable("pending", [task.num_workers, 6], FREE)
            self._begun = variable("begun", [], 0)
            self.saved = [self.progress, self._files]
            self._lives = variable("lives", [task.num_workers], 0)
            self.state = [self._owner, self._pending, self._begun, self._lives]
            self.open = tf.group(*[each.initializer for each in self.state])
            self.is_torn = self._is_ahead()
            self.has_ended = self.has_ended_now()
            self._life = tf.placeholder(tf.int64, [])
            self._mutex = tf.raw_ops.MutexV2(shared_name=f"{SCOPE}/shards/mutex")
            self._answer = self._hand_out(reader.seed if reader.shuffle else None)
            self._found = self._look_up()

    def _is_ahead(self) -> Any:
        return tf.greater(self._begun.read_value(), self._global_step.read_value())

    def has_ended_now(self) -> Any:
        """Return ``has_ended`` as a new tensor, which the server reads after the current control dependencies.

        The server reads the progress before the global step: a step advances the progress first, the global step last.
        """
        with tf.device(ps_device(0)):
            done = tf.reduce_all(self.progress.read_value()[:, 0] >= self._epochs)
            with tf.control_dependencies([done]):
                return tf.logical_and(done, tf.logical_not(self._is_ahead()))

    # -- outside of steps

    def begin(self, session: Any, step: int, era: int) -> None:
        """Start to read the source's batches, from the progress that the servers store.

        Args:
          step: the global step when this worker joined.
          era: the era of the worker's gradients; see ``TokenSyncOptimizer``.

        Raises:
          tf.errors.AbortedError: the global step is no longer ``step``, or the next step has begun; join again.
          tf.errors.DeadlineExceededError: the server does not answer in time.
          TrainingError: the progress on the servers belongs to other files.
        """
        life = time.time_ns()
        files, owner, own, progress, begun, found_step = self._answer_to(session, life, self._found)
        self._check_files(files)
        if found_step != step or begun > step:
            raise tf.errors.AbortedError(None, None, "a step began or ended after this worker had joined")
        # Where the row is of this step, the first batch must be the one that was noted.
        noted = int(own[SHARD]) if own[STAMP] == step + era else None
        tickets = tickets_of(owner == self._worker, progress, noted)
        self.source.begin(Beginning(noted == NOTHING.shard, tickets), lambda: self._ask(session, life))

    def _check_files(self, files: int) -> None:
        if files != self._files_digest:
            raise TrainingError(
                f"shards: expected the shards that training began with, found {self._number} others; use the same"
                " files, sizes, shuffle and seed as before, or start with another train.checkpoint.dir"
            )

    def _ask(self, session: Any, life: int) -> Optional[Ticket]:
        shard, epoch, begin = self._answer_to(session, life, self._answer)
        return None if shard == FREE else Ticket(int(shard), int(epoch), int(begin))

    def _answer_to(self, session: Any, life: int, question: Any) -> Any:
        return session.run(question, {self._life: life}, options=tf.RunOptions(timeout_in_ms=_OTHERS_MS))

    def _look_up(self) -> List[Any]:
        """Begin a life; return the files, the owners, the own row of pending, the progress, ``begun``, the global step.

        Where neither of the last two, which are read last, is after a step, that step has moved nothing of the others.
        From here on a question of an earlier life, which may still be on its way, gets no shard.
        """

        def work() -> List[Any]:
            read = (self._files, self._owner, self._pending, self.progress)
            files, owner, pending, progress = map(copied, read)
            found = [files, owner, pending[self._worker], progress]
            with tf.control_dependencies(found):
                found += [copied(self._begun), copied(self._global_step)]
            with tf.control_dependencies(found):
                alive = tf.scatter_update(self._lives, self._worker, self._life).op
            with tf.control_dependencies([alive]):
                return [*found, alive, *self._clear()]

        opened, (files, owner, own, progress, begun, step, *_) = locked(self._mutex, [self._life], work)
        with tf.control_dependencies([opened]):
            return [tf.identity(each) for each in (files, owner, own, progress, begun, step)]

    def _clear(self) -> List[Any]:
        """Make the operations by which a life begins, beside that which counts it."""
        return []

    def _hand_out(self, seed: Optional[int]) -> Any:
        """Give this worker the first free shard; return its row, int64 [3], or FREE and two numbers.

        A lock of the server keeps other workers out meanwhile. The server opens it again, whatever ends this.
        """
        opened, (answer, _) = locked(self._mutex, [self._life], lambda: self._first_free(seed))
        with tf.control_dependencies([opened]):
            return tf.identity(answer)

    def _first_free(self, seed: Optional[int]) -> List[Any]:
        """Return the answer of ``_hand_out``, and the operation that notes the owner."""
        is_newest = tf.equal(self._lives.read_value()[self._worker], self._life)
        owner = copied(self._owner)  # the chief frees shards meanwhile: it moves the places of a step without the lock
        with tf.control_dependencies([owner]):  # a shard that is free has its progress already, and keeps it
            progress = self.progress.read_value()
            epochs, begins = progress[:, 0], progress[:, 1]
        may = tf.logical_and(tf.logical_and(tf.equal(owner, FREE), epochs < self._epochs), is_newest)
        first_epoch = tf.reduce_min(tf.where(may, epochs, tf.fill([self._number], tf.int64.max)))
        may = tf.logical_and(may, tf.equal(epochs, first_epoch))
        if self.most_ahead is not None:
            may = tf.logical_and(may, first_epoch <= tf.reduce_min(epochs) + self.most_ahead)
        shard = tf.argmin(tf.where(may, self._order(seed, first_epoch), tf.fill([self._number], tf.int64.max)))
        found = may[shard]
        answer = tf.stack([tf.where(found, shard, tf.constant(FREE, tf.int64)), epochs[shard], begins[shard]])
        with tf.control_dependencies([answer]):
            return [answer, write_if(found, self._owner, shard, tf.constant(self._worker, tf.int64))]

    def _order(self, seed: Optional[int], epoch: Any) -> Any:
        """Return for each shard its rank in an epoch, int64 [shards]: drawn by the seed, or that of the files."""
        shards = tf.range(self._number, dtype=tf.int64)
        if seed is None:
            return shards
        return mix(shards + mix(epoch + mix(tf.constant([seed], tf.int64)))) // 2  # below the largest int64

    # -- in a step

    def note(self, stamp: Any) -> Any:
        """Make the operation that writes this worker's row (the position of its batch) for the step with ``stamp``.

        The worker may send its gradient after this operation.
        """
        row = tf.concat([[stamp], self.place], 0)
        with tf.device(ps_device(0)):
            return tf.scatter_update(self._pending, self._worker, row).op

    def begin_step(self, stamp: Any, after: Sequence[Any]) -> Tuple[Any, Any]:
        """As the chief, make the operation that checks the rows of all workers and notes the step as begun.

        Args:
          stamp: the stamp that all rows of the step must have.
          after: the gradients of all workers; the rows are read after the gradients have arrived.

        Returns:
          The operation, and the rows, int64 [workers, 6], which ``move`` needs.
        """
        with tf.device(ps_device(0)):
            stamp = tf.identity(stamp)
            with tf.control_dependencies(after):
                rows = copied(self._pending)
            progress = self.progress.read_value()
            with tf.control_dependencies(_checks(rows, progress, stamp)):
                next_step = self._global_step.read_value() + 1
                return tf.assign(self._begun, next_step).op, rows

    def move(self, rows: Any) -> Any:
        """As the chief, make the operation that advances the progress by ``rows``, the rows of one step.

        The operation also frees each shard that has no further record in its epoch.
        """
        with tf.device(ps_device(0)):
            real = tf.boolean_mask(rows, rows[:, SHARD] >= 0)
            is_last = real[:, IS_LAST]
            moved = tf.stack([real[:, EPOCH] + is_last, real[:, END] * (1 - is_last)], 1)
            with tf.control_dependencies([tf.scatter_update(self.progress, real[:, SHARD], moved).op]):
                freed = tf.boolean_mask(real[:, SHARD], is_last > 0)
                return tf.scatter_update(self._owner, freed, tf.fill(tf.shape(freed), tf.constant(FREE, tf.int64))).op


def variable(name: str, shape: List[int], value: int) -> Any:
    """Return an int64 variable for the state of shards, on the current device.

    Args:
      name: the last part of the variable's name.
      value: the first value of every element.
    """
    return kept(f"{SCOPE}/shards/{name}", shape, tf.int64, value)


def write_if(is_so: Any, variable: Any, index: Any, value: Any) -> Any:
    """Make the operation that writes ``value`` to the row ``index`` of ``variable`` if ``is_so`` is true."""
    number = tf.cast(is_so, tf.int32)
    indices = tf.reshape(tf.cast(index, tf.int64), [1])[:number]
    return tf.scatter_update(variable, indices, value[tf.newaxis][:number]).op


def tickets_of(is_own: Any, progress: Any, first: Optional[int]) -> List[Ticket]:
    """Return a ticket for each shard that a worker has.

    The ticket of the shard ``first`` comes first. The others are sorted by epoch, record and index of the shard.

    Args:
      is_own: whether the worker has each shard, bool [shards].
      progress: the finished epochs, and the trained records of the next epoch, of each shard, int64 [shards, 2].
      first: the index of a shard; None to sort all tickets.
    """
    shards = np.flatnonzero(is_own).tolist()
    shards.sort(key=lambda shard: (shard != first, *progress[shard].tolist(), shard))
    return [Ticket(shard, *progress[shard].tolist()) for shard in shards]


def _checks(rows: Any, progress: Any, stamp: Any) -> List[Any]:
    """Make the operations that fail unless the rows are those of one step, and each begins where the progress is."""
    shards = tf.maximum(rows[:, SHARD], 0)
    follows = tf.reduce_all(tf.equal(tf.gather(progress, shards), rows[:, EPOCH : BEGIN + 1]), 1)
    is_empty = rows[:, SHARD] < 0
    taken = tf.boolean_mask(rows[:, SHARD], tf.logical_not(is_empty))
    rules = {
        "each shard belongs to one worker": tf.equal(tf.size(tf.unique(taken)[0]), tf.size(taken)),
        "every worker's batch belongs to this step": tf.equal(rows[:, STAMP], stamp),
        "every batch begins where the progress of its shard ends": tf.logical_or(is_empty, follows),
    }
    made = [tf.debugging.Assert(tf.reduce_all(rule), [f"shards: expected that {name}; found", rows], 100)
            for name, rule in rules.items()]  # fmt: skip
    return [*made, tf.debugging.Assert(tf.logical_not(tf.reduce_all(is_empty)), ["shards: a step has no records"])]
