"""The progress of each shard, on ``ps:0``: saved and restored with the variables, advanced as part of a step.

    progress   for each shard: the number of finished epochs, and of trained records in the next one; in checkpoints.
               Where files arrive, there also: the digest of the last shard that was trained to its end in this place
    owner      for each shard: the worker that trains it, or FREE; not in checkpoints: ``open`` frees all shards
    pending    for each worker: the position (shard, epoch, records) of its batch in this step
    begun      the step that is being applied, or the last step that was applied
    lives      for each worker: the number of its newest life (a session's reading); older lives get no shards
    arrived    for each shard: its digest, where files arrive during training (``arrivals``); in checkpoints

One step of N workers:

    worker i   writes its row of ``pending``, then sends its gradient
    chief      waits for all gradients, checks that every row continues the progress, and notes the step as begun
    chief      updates the variables, advances the progress by all rows, and counts the step

If a chief dies between the last two, the step is half done, and ``is_torn`` is true. Then variables and progress are
restored together, from the newest checkpoint. The position of a batch determines its records. So if a worker dies after
it has written its row, its next process sends the gradient of the same batch. The servers use each gradient once.
"""

import time
from functools import partial
from types import MappingProxyType
from typing import Any, List, Mapping, Optional, Sequence, Tuple

from cluster.errors import TrainingError
from cluster.recommend.once.arrivals import LOOK_S, NO_SHARD, ArrivingShards, Registering
from cluster.recommend.once.place_rows import (
    END,
    ENDED,
    EPOCH,
    FREE,
    IS_LAST,
    SHARD,
    STAMP,
    checks,
    tickets_of,
    variable,
    write_if,
)
from cluster.recommend.once.shard_files import NOTHING, Ticket
from cluster.recommend.once.source import Beginning, Source
from cluster.recommend.tables.row_keys import mix
from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import copied, locked
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.variables.masters import SCOPE

_FOREVER = 1 << 40  # epochs, where their number is not limited
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
      has_ended: whether every shard is trained in all epochs, in counted steps; never where files arrive.
      is_idle: whether no worker has a shard; None unless files arrive during training.
      lag: metrics of the files that wait, on the chief and where files arrive.
      is_torn: whether a step began but was not counted; valid only while no chief takes steps.
      most_ahead: a worker gets only shards that are at most this number of epochs ahead of the shard with the fewest
        finished epochs; None for no limit. Where files arrive, places are not used equally often: there is no limit.
    """

    most_ahead: Optional[int] = None  # in a synchronous step no worker goes on without the others

    def __init__(self, source: Source, place: Any, task: Task, global_step: Any, epochs: Optional[int]):
        self.source, self.place, self._global_step, self.lag = source, place, global_step, {}  # type: Any, Any, Any, Any
        reader = source.reader
        self._arriving = reader.shards if isinstance(reader.shards, ArrivingShards) else None
        self._is_chief, self._worker = task.is_chief, task.worker_index
        self._epochs = _FOREVER if epochs is None else epochs
        self._number, self._files_digest = len(reader.shards), reader.digest()
        with tf.device(ps_device(0)):
            self.progress = variable("progress", [self._number, 3 if self._arriving else 2], 0)
            self._files = variable("files", [], self._files_digest)
            self._owner = variable("owner", [self._number], FREE)
            self._pending = variable("pending", [task.num_workers, 6], FREE)
            self._begun = variable("begun", [], 0)
            self.saved = [self.progress, self._files]
            if self._arriving:
                self._arrived = variable("arrived", [self._number], NO_SHARD)
                self.saved.append(self._arrived)
            self._lives = variable("lives", [task.num_workers], 0)
            self.state = [self._owner, self._pending, self._begun, self._lives]
            self.open = tf.group(*[each.initializer for each in self.state])
            self.is_torn = self._is_ahead()
            self.has_ended = self.has_ended_now()
            self._life = tf.placeholder(tf.int64, [])
            self._mutex = tf.raw_ops.MutexV2(shared_name=f"{SCOPE}/shards/mutex")
            self._answer = self._hand_out(reader.seed if reader.shuffle else None)
            self._found = self._look_up()
            is_free = tf.equal(self._owner.read_value(), FREE)
            self.is_idle = tf.reduce_all(is_free) if self._arriving else None
            if self._arriving and task.is_chief:
                places = (self._arrived, self._trainable(), is_free, self.progress.read_value()[:, 0])
                self._registering = Registering(places, self._mutex, self._life, self._is_newest)

    def _is_ahead(self) -> Any:
        return tf.greater(self._begun.read_value(), self._global_step.read_value())

    def has_ended_now(self) -> Any:
        """Return ``has_ended`` as a new tensor, which the server reads after the current control dependencies.

        The server reads the progress before the global step: a step advances the progress first, the global step last.
        """
        with tf.device(ps_device(0)):
            if self._arriving:
                return tf.constant(False)
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
        is_own, own, progress, begun, found_step = self._read_places(session, life)
        if found_step != step or begun > step:
            raise tf.errors.AbortedError(None, None, "a step began or ended after this worker had joined")
        # Where the row is of this step, the first batch must be the one that was noted.
        noted = int(own[SHARD]) if own[STAMP] == step + era else None
        beginning = Beginning(noted == NOTHING.shard, tickets_of(is_own, progress, noted))
        self.source.begin(beginning, lambda: self._ask(session, life))

    def _read_places(self, session: Any, life: int) -> Any:
        """Begin a life, and return what ``_look_up`` finds but for the files. The chief begins to look for new ones.

        Raises:
          TrainingError: the progress on the servers belongs to other files.
        """
        files, arrived, *found = self._answer_to(session, life, self._found)
        if files != self._files_digest:
            raise TrainingError(
                f"shards: expected the shards that training began with, found {self._number} others; use the same"
                " files, sizes, shuffle and seed as before, or start with another train.checkpoint.dir"
            )
        if self._arriving:
            self._arriving.learn(dict(enumerate(arrived.tolist())))
            if self._is_chief:
                ask = partial(self._answer_to, session, life)
                self.source.watch(self._registering.registrar(self._arriving, arrived, ask, self.lag).look, LOOK_S)
        return found

    def _ask(self, session: Any, life: int) -> Optional[Ticket]:
        shard, epoch, begin, digest = self._answer_to(session, life, self._answer)
        if self._arriving:
            self._arriving.learn({int(shard): int(digest)})
        return None if shard == FREE else Ticket(int(shard), int(epoch), int(begin))

    def _answer_to(self, session: Any, life: int, question: Any, more: Mapping[Any, Any] = MappingProxyType({})) -> Any:
        return session.run(question, {self._life: life, **more}, options=tf.RunOptions(timeout_in_ms=_OTHERS_MS))

    def _look_up(self) -> List[Any]:
        """Begin a life; return the files, those that arrived, and what ``_read_places`` returns.

        That is: whether this worker has each shard, its row of pending, the progress, ``begun``, the global step. Where
        neither of the last two, which are read last, is after a step, that step has moved nothing of the others. From
        here on a question of an earlier life, which may still be on its way, gets no shard.
        """

        def work() -> List[Any]:
            read = (self._files, self._owner, self._pending, self.progress)
            files, owner, pending, progress = map(copied, read)
            arrived = copied(self._arrived) if self._arriving else tf.zeros([0], tf.int64)
            is_own = tf.logical_and(tf.equal(owner, self._worker), self._trainable())
            found = [files, arrived, is_own, pending[self._worker], progress]
            with tf.control_dependencies(found):
                found += [copied(self._begun), copied(self._global_step)]
            with tf.control_dependencies(found):
                alive = tf.scatter_update(self._lives, self._worker, self._life).op
            with tf.control_dependencies([alive]):
                return [*found, alive, *self._clear()]

        opened, found = locked(self._mutex, [self._life], work)
        with tf.control_dependencies([opened]):
            return [tf.identity(each) for each in found[:7]]

    def _clear(self) -> List[Any]:
        return []  # further operations with which a life begins

    def _hand_out(self, seed: Optional[int]) -> Any:
        """Give this worker the first free shard; return its number, epoch, record and digest, int64 [4].

        The number is FREE without a shard. The server's lock keeps others out, and opens whatever ends this.
        """
        opened, (answer, _) = locked(self._mutex, [self._life], lambda: self._first_free(seed))
        with tf.control_dependencies([opened]):
            return tf.identity(answer)

    def _first_free(self, seed: Optional[int]) -> List[Any]:
        """Return the answer of ``_hand_out``, and the operation that notes the owner."""
        owner = copied(self._owner)  # the chief frees shards meanwhile: it moves the places of a step without the lock
        with tf.control_dependencies([owner]):  # a shard that is free has its progress already, and keeps it
            progress = self.progress.read_value()
            epochs, begins = progress[:, 0], progress[:, 1]
            may = tf.logical_and(tf.logical_and(tf.equal(owner, FREE), self._trainable()), self._is_newest())
        first_epoch = tf.reduce_min(tf.where(may, epochs, tf.fill([self._number], tf.int64.max)))
        may = tf.logical_and(may, tf.equal(epochs, first_epoch))
        if self.most_ahead is not None and not self._arriving:
            may = tf.logical_and(may, first_epoch <= tf.reduce_min(epochs) + self.most_ahead)
        shard = tf.argmin(tf.where(may, self._order(seed, first_epoch), tf.fill([self._number], tf.int64.max)))
        found = may[shard]
        digest = self._arrived.read_value()[shard] if self._arriving else tf.constant(NO_SHARD, tf.int64)
        number = tf.where(found, shard, tf.constant(FREE, tf.int64))
        answer = tf.stack([number, epochs[shard], begins[shard], digest])
        with tf.control_dependencies([answer]):
            return [answer, write_if(found, self._owner, shard, tf.constant(self._worker, tf.int64))]

    def _trainable(self) -> Any:
        """Return whether each shard has records to train, bool [shards]."""
        if not self._arriving:
            return self.progress.read_value()[:, 0] < self._epochs
        arrived = self._arrived.read_value()
        return tf.logical_and(
            tf.not_equal(arrived, NO_SHARD), tf.not_equal(arrived, self.progress.read_value()[:, ENDED])
        )

    def _moved(self, rows: Any) -> Any:
        """Return the progress of the shards of ``rows``, int64 [n, 6], after their batches. One write has all of it."""
        shards, is_last = rows[:, SHARD], rows[:, IS_LAST]
        moved = [rows[:, EPOCH] + is_last, rows[:, END] * (1 - is_last)]
        if self._arriving:
            ended = tf.gather(self.progress.read_value(), shards)[:, ENDED]
            moved.append(tf.where(is_last > 0, tf.gather(self._arrived.read_value(), shards), ended))
        return tf.stack(moved, 1)

    def _is_newest(self) -> Any:
        return tf.equal(self._lives.read_value()[self._worker], self._life)

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
            with tf.control_dependencies(checks(rows, progress, stamp)):
                next_step = self._global_step.read_value() + 1
                return tf.assign(self._begun, next_step).op, rows

    def move(self, rows: Any) -> Any:
        """As the chief, make the operation that advances the progress by a step's ``rows``, and frees ended shards."""
        with tf.device(ps_device(0)):
            real = tf.boolean_mask(rows, rows[:, SHARD] >= 0)
            freed = tf.boolean_mask(real[:, SHARD], real[:, IS_LAST] > 0)
            with tf.control_dependencies([tf.scatter_update(self.progress, real[:, SHARD], self._moved(real)).op]):
                return tf.scatter_update(self._owner, freed, tf.fill(tf.shape(freed), tf.constant(FREE, tf.int64))).op
