"""The batches of one worker, made of the shards that it gets. Plain Python; a function asks the servers for shards.

A worker reads ahead: batches wait for their step. So the number of records that a worker has *read* is not the progress
of a shard; only a step advances the progress, on the servers. If a session is abandoned, the batches that were read for
it are dropped. The next session begins a new *life*: it reads again, from the progress that the servers store.
"""

import threading
import time
from typing import Callable, Iterator, List, NamedTuple, Optional, Sequence

from cluster.recommend.once.shard_files import Reader, RecordBatch, Ticket

_LOOK_S = 1.0  # how often a wait looks at whether it is still wanted
_MOMENT_S, _REST_S = 0.005, 0.1
_AHEAD = 2  # batches that wait here; the dataset has some more


class Beginning(NamedTuple):
    """The first batches of a *life*, which is one session's reading of batches.

    ``is_empty``: whether the first batch has no record that counts. ``tickets``: the tickets of the shards that the
    worker already has.
    """

    is_empty: bool
    tickets: Sequence[Ticket]


class Source:
    """The batches of one worker, read separately for each session; the reading for one session is a *life*.

    Each life has a thread, which asks for shards and reads them. So a caller that waits for a batch does not wait for
    the servers' answers. A life can end while its thread still waits for an answer.

    Attributes:
      error: the error that ended the reading of the current life; None if there was no error.
    """

    def __init__(self, reader: Reader):
        self.reader = reader
        self.error: Optional[Exception] = None
        self._changed = threading.Condition()
        self._moment_s = _MOMENT_S
        self._life = 0
        self._ready: List[RecordBatch] = []
        self._made = self._trained = 0  # batches of this life
        self._real: List[int] = []  # for each batch that is made and not trained: how many of its records count

    def new_life(self) -> int:
        """End the current life (the reading for one session), and return the number of the next life, for ``begin``."""
        with self._changed:
            self._life += 1
            self._ready, self._made, self._trained, self._real, self.error = [], 0, 0, [], None
            self._changed.notify_all()
            return self._life

    def begin(self, beginning: Beginning, ask: Callable[[], Optional[Ticket]]) -> None:
        """Start the reading of the current life's batches.

        Args:
          beginning: the first batches of the life.
          ask: a function that returns the ticket of a further shard, or None while no shard is free.
        """
        threading.Thread(target=self._read, args=(self._life, beginning, ask), daemon=True).start()

    def watch(self, look: Callable[[], None], every_s: float) -> None:
        """Call ``look`` every so many seconds while the current life lasts; its error ends the reading."""
        threading.Thread(target=self._watch, args=(self._life, look, every_s), daemon=True).start()

    def _watch(self, life: int, look: Callable[[], None], every_s: float) -> None:
        try:
            while self._life == life:
                look()
                time.sleep(every_s)
        except Exception as error:
            self._fail(life, error)

    def note_trained(self) -> None:
        """Note that one more batch of the current life was trained."""
        with self._changed:
            self._trained += 1
            self._real.pop(0)
            self._changed.notify_all()

    def rest(self, rests: bool) -> None:
        """Let a caller of ``batches`` wait for longer, while this worker has nothing else to do; or no longer."""
        self._moment_s = _REST_S if rests else _MOMENT_S

    def next_real(self) -> int:
        """Wait for the next batch that is not yet trained, and return how many of its records count.

        Raises:
          Exception: the error that ended the reading of the current life.
        """
        with self._changed:
            while not self._real:
                if self.error is not None:
                    raise self.error
                self._changed.wait(_LOOK_S)
            return self._real[0]

    def batches(self, life: int) -> Iterator[Optional[RecordBatch]]:
        """Yield the batches of ``life`` until another life begins; yield None if a batch takes longer than a moment.

        The caller blocks one of TensorFlow's few threads while it waits. So each wait is short. After the first batch,
        a batch in which no record counts comes only if all earlier batches are trained and no shard is free.

        Raises:
          Exception: the error that ended the reading of ``life``.
        """
        while True:
            with self._changed:
                if self._life == life and not self._ready and self.error is None:
                    self._changed.wait(self._moment_s)
                if self._life != life:
                    return
                if not self._ready and self.error is not None:
                    raise self.error
                batch = self._ready.pop(0) if self._ready else None
                self._changed.notify_all()
            yield batch

    def _read(self, life: int, beginning: Beginning, ask: Callable[[], Optional[Ticket]]) -> None:
        try:
            for batch in self._made_of(life, beginning, ask):
                if not self._wait(life, lambda: len(self._ready) < _AHEAD):
                    return
                with self._changed:
                    if self._life != life:
                        return
                    self._made += 1
                    self._real.append(batch.real)
                    self._ready.append(batch)
                    self._changed.notify_all()
        except Exception as error:
            self._fail(life, error)

    def _fail(self, life: int, error: Exception) -> None:
        with self._changed:
            if self._life == life:
                self.error = error
                self._changed.notify_all()

    def _made_of(self, life: int, beginning: Beginning, ask: Callable[[], Optional[Ticket]]) -> Iterator[RecordBatch]:
        if beginning.is_empty:
            yield from self._empty(life)
        waiting = list(beginning.tickets)
        while True:
            ticket = waiting.pop(0) if waiting else ask()
            if ticket is None:
                # A shard that this worker has read to its end is free once that is trained.
                if not self._wait(life, lambda: self._trained >= self._made):
                    return
                ticket = ask()
            if ticket is None:
                yield from self._empty(life)
            else:
                yield from self.reader.batches(ticket)

    def _empty(self, life: int) -> Iterator[RecordBatch]:
        """Yield a batch in which no record counts. Where files arrive, this worker gets no shard until that is over.

        Otherwise the others would count on a record of this worker in a step in which it has none (``OnceWorker``).
        """
        yield self.reader.empty()
        if self.reader.sample is not None:
            self._wait(life, lambda: self._trained >= self._made)

    def _wait(self, life: int, condition: Callable[[], bool]) -> bool:
        """Wait until ``condition`` holds, and return whether this life lasts."""
        with self._changed:
            while self._life == life and not condition():
                self._changed.wait(_LOOK_S)
            return self._life == life
