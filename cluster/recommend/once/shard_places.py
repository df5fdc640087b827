"""The progress of each shard, on ``ps:0``: saved and restored with the variables, moved as part of a step.

    progress   for each shard: the epochs that are done, and the records of the next one that are. In checkpoints
    owner      for each shard: the worker that has it, or FREE. Not in checkpoints: a chief that opens frees all
    pending    for each worker: which part of which shard its gradient of this step is of
    begun      the step that is being applied, or the last one that was
    lives      for each worker: the number by which its newest session asks for shards

One step of N workers:

    worker i   notes its row of ``pending``, then gives its gradient
    chief      has the gradients of all: checks that every row follows the progress, and notes the step as begun
    chief      updates the variables, moves the progress by all rows, and counts the step

A chief that dies between noting and counting leaves a step that is half done. ``is_torn`` shows that; then variables
and progress come back together, from the newest checkpoint. A batch is a function of its place. So a worker that dies
after it noted its row is followed by one that gives the same batch. The servers use each gradient once.
"""

import time
from typing import Any, List, Optional, Sequence, Tuple

import numpy as np

from cluster.errors import TrainingError
from cluster.recommend.once.shard_files import NOTHING, Ticket
from cluster.recommend.once.source import Beginning, Source
from cluster.recommend.tables.row_keys import mix
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import kept, locked
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
      place: of the batch of a step, int64 [5]: a ``shard_files.Place``. Who fetches it takes the batch.
      global_step: the one that counts, on ``ps:0``.
      epochs: how often each shard is trained; None for no limit.

    Attributes:
      saved: the variables of a checkpoint, which the chief initialises.
      state: variables that are not saved; ``open`` gives them values.
      open: frees all shards. The chief runs it when ``saved`` have their values, and before others join.
      has_ended: whether every shard has been trained in all epochs, and the step of the last record is counted.
      is_torn: whether a step was begun and not counted; of use only while no chief takes steps.
      most_ahead: how many epochs further a shard may be that is given out than the last of all; None for no limit.
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
        """Return whether all is trained, read on the server after the current control dependencies.

        The progress is read first, because it moves before its step is counted.
        """
        with tf.device(ps_device(0)):
            done = tf.reduce_all(self.progress.read_value()[:, 0] >= self._epochs)
            with tf.control_dependencies([done]):
                return tf.logical_and(done, tf.logical_not(self._is_ahead()))

    # -- outside of steps

    def begin(self, session: Any, step: int, era: int) -> None:
        """Let the source's batches come, from where the servers are.

        Raises:
          tf.errors.AbortedError: the global step is not ``step`` any more; join again.
          tf.errors.DeadlineExceededError: the server does not answer in time.
          TrainingError: the checkpoint is of other files.
        """
        life = time.time_ns()
        found_step, files, owner, own, progress = self._answer_to(session, life, self._found)
        self._check_files(files)
        if found_step != step:
            raise tf.errors.AbortedError(None, None, "a step was counted meanwhile")
        # Where the row is of this step, the first batch must be the one that was noted.
        noted = int(own[SHARD]) if own[STAMP] == step + era else None
        tickets = tickets_of(owner == self._worker, progress, noted)
        self.source.begin(Beginning(noted == NOTHING.shard, tickets), lambda: self._ask(session, life))

    def _check_files(self, files: int) -> None:
        if files != self._files_digest:
            raise TrainingError(
                f"shards: expected the {self._number} shards that training began with, found others; give the same"
                " files, sizes, shuffle and seed, or begin in another train.checkpoint.dir"
            )

    def _ask(self, session: Any, life: int) -> Optional[Ticket]:
        shard, epoch, begin = self._answer_to(session, life, self._answer)
        return None if shard == FREE else Ticket(int(shard), int(epoch), int(begin))

    def _answer_to(self, session: Any, life: int, question: Any) -> Any:
        return session.run(question, {self._life: life}, options=tf.RunOptions(timeout_in_ms=_OTHERS_MS))

    def _look_up(self) -> List[Any]:
        """Begin a life; return the global step, the files, the owners, the own row of pending, and the progress.

        From here on a question of an earlier life, which may still be on its way, gets no shard.
        """

        def work() -> List[Any]:
            read = [self._global_step, self._files, self._owner, self._pending, self.progress]
            found: List[Any] = tf.tuple([tf.maximum(each.read_value(), tf.int64.min) for each in read])
            found[3] = tf.identity(found[3][self._worker])
            with tf.control_dependencies(found):
                begun = tf.scatter_update(self._lives, self._worker, self._life).op
            with tf.control_dependencies([begun]):
                return [*found, begun, *self._clear()]

        opened, (step, files, owner, own, progress, *_) = locked(self._mutex, [self._life], work)
        with tf.control_dependencies([opened]):
            return [tf.identity(each) for each in (step, files, owner, own, progress)]

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
        owner = tf.identity(self._owner.read_value())
        with tf.control_dependencies([owner]):  # a shard that is free has its progress already
            progress = self.progress.read_value()
            epochs, begins = progress[:, 0], progress[:, 1]
        may = tf.logical_and(tf.logical_and(tf.equal(owner, FREE), epochs < self._epochs), is_newest)
        first_epoch = tf.reduce_min(tf.where(may, epochs, tf.fill([self._number], tf.int64.max)))
        may = tf.logical_and(may, tf.equal(epochs, first_epoch))
        if self.most_ahead is not None:
            may = tf.logical_and(may, first_epoch <= tf.reduce_min(epochs) + self.most_ahead)
        shard = tf.argmin(tf.where(may, self._order(seed, first_epoch), tf.fill([self._number], tf.int64.max)))
        found = may[shard]
        given = tf.where(found, tf.constant(self._worker, tf.int64), owner[shard])
        answer = tf.stack([tf.where(found, shard, tf.constant(FREE, tf.int64)), epochs[shard], begins[shard]])
        with tf.control_dependencies([answer]):
            return [answer, tf.scatter_update(self._owner, shard, given).op]

    def _order(self, seed: Optional[int], epoch: Any) -> Any:
        """Return for each shard its rank in an epoch, int64 [shards]: drawn by the seed, or that of the files."""
        shards = tf.range(self._number, dtype=tf.int64)
        if seed is None:
            return shards
        return mix(shards + mix(epoch + mix(tf.constant([seed], tf.int64)))) // 2  # below the largest int64

    # -- in a step

    def note(self, stamp: Any) -> Any:
        """Make the operation that notes this worker's row of the step; its gradient may be given afterwards."""
        row = tf.concat([[stamp], self.place], 0)
        with tf.device(ps_device(0)):
            return tf.scatter_update(self._pending, self._worker, row).op

    def begin_step(self, stamp: Any, after: Sequence[Any]) -> Tuple[Any, Any]:
        """Make, on the chief, what checks the rows of all workers and notes the step as begun.

        Returns:
          The operation, and the rows, which ``move`` needs.
        """
        with tf.device(ps_device(0)):
            stamp = tf.identity(stamp)
            with tf.control_dependencies(after):
                rows = tf.maximum(self._pending.read_value(), FREE)  # a new tensor: the variable changes
            progress = self.progress.read_value()
            with tf.control_dependencies(_checks(rows, progress, stamp)):
                next_step = self._global_step.read_value() + 1
                return tf.assign(self._begun, next_step).op, rows

    def move(self, rows: Any) -> Any:
        """Make, on the chief, the operation that moves the progress by the rows of a step."""
        with tf.device(ps_device(0)):
            real = tf.boolean_mask(rows, rows[:, SHARD] >= 0)
            is_last = real[:, IS_LAST]
            moved = tf.stack([real[:, EPOCH] + is_last, real[:, END] * (1 - is_last)], 1)
            with tf.control_dependencies([tf.scatter_update(self.progress, real[:, SHARD], moved).op]):
                freed = tf.boolean_mask(real[:, SHARD], is_last > 0)
                return tf.scatter_update(self._owner, freed, tf.fill(tf.shape(freed), tf.constant(FREE, tf.int64))).op


def variable(name: str, shape: List[int], value: int) -> Any:
    """Return a variable of int64 beside the places, on the current device; it has ``value`` at first."""
    return kept(f"{SCOPE}/shards/{name}", shape, tf.int64, value)


def tickets_of(is_own: Any, progress: Any, first: Optional[int]) -> List[Ticket]:
    """Return tickets for the shards that are a worker's own: that of ``first``, then the others as they came.

    Args:
      is_own: bool [shards]. progress: int64 [shards, 2].
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
        "each shard is one worker's": tf.equal(tf.size(tf.unique(taken)[0]), tf.size(taken)),
        "the batch of every worker is of this step": tf.equal(rows[:, STAMP], stamp),
        "every batch begins where the progress of its shard is": tf.logical_or(is_empty, follows),
    }
    made = [tf.debugging.Assert(tf.reduce_all(rule), [f"shards: expected that {name}; found", rows], 100)
            for name, rule in rules.items()]  # fmt: skip
    return [*made, tf.debugging.Assert(tf.logical_not(tf.reduce_all(is_empty)), ["shards: a step without records"])]
