"""Workers in step, which die and come back, train every record once an epoch; the servers are a dictionary here."""

import random
import threading
from collections import defaultdict
from typing import Dict, Iterator, List, Optional

import pytest

from cluster.recommend.once import source as module
from cluster.recommend.once.shard_files import Reader, RecordBatch, Shard, Ticket
from cluster.recommend.once.source import Beginning, Source
from tests.support.waiting import eventually


class Servers:
    """What ``cluster.recommend.once.shard_places`` keeps, and its rules."""

    def __init__(self, shards: int, epochs: int):
        self.progress = [(0, 0)] * shards
        self.owner: List[Optional[int]] = [None] * shards
        self.pending: Dict[int, RecordBatch] = {}
        self.epochs = epochs

    def ask(self, worker: int) -> Optional[Ticket]:
        free = [shard for shard, owner in enumerate(self.owner) if owner is None]
        free = [shard for shard in free if self.progress[shard][0] < self.epochs]
        if not free:
            return None
        shard = min(free, key=lambda each: (self.progress[each][0], each))
        self.owner[shard] = worker
        return Ticket(shard, *self.progress[shard])

    def beginning(self, worker: int) -> Beginning:
        noted = self.pending[worker].place.shard if worker in self.pending else None
        own = [shard for shard, owner in enumerate(self.owner) if owner == worker]
        own.sort(key=lambda shard: (shard != noted, self.progress[shard], shard))
        return Beginning(noted == -1, [Ticket(shard, *self.progress[shard]) for shard in own])

    def count(self) -> None:
        for batch in self.pending.values():
            shard, epoch, begin, end, is_last = batch.place
            if shard >= 0:
                assert self.progress[shard] == (epoch, begin)
                self.progress[shard] = (epoch + 1, 0) if is_last else (epoch, end)
                self.owner[shard] = None if is_last else self.owner[shard]
        self.pending = {}

    @property
    def has_ended(self) -> bool:
        return all(epoch == self.epochs for epoch, _ in self.progress)


class Worker:
    def __init__(self, index: int, servers: Servers, reader: Reader):
        self.index, self.servers, self.source = index, servers, Source(reader)
        self.start()

    def start(self) -> None:
        """Begins a life, as a session does."""
        life = self.source.new_life()
        self.source.begin(self.servers.beginning(self.index), lambda: self.servers.ask(self.index))
        self.batches = (batch for batch in self.source.batches(life) if batch is not None)


@pytest.mark.parametrize("seed", range(60))
def test_every_record_is_trained_once_an_epoch_and_no_step_is_empty(seed: int) -> None:
    dice = random.Random(seed)
    sizes = [dice.randint(1, 12) for _ in range(dice.randint(1, 6))]
    epochs, size = dice.randint(1, 3), dice.randint(1, 5)
    shards = [Shard(str(index)) for index in range(len(sizes))]
    reader = Reader(
        shards, lambda shard: (f"{shard.path}.{n}".encode() for n in range(sizes[int(shard.path)])), size,
        dice.choice([0, 4]), seed,
    )  # fmt: skip
    servers = Servers(len(sizes), epochs)
    workers = [Worker(index, servers, reader) for index in range(dice.randint(1, 4))]
    trained: Dict[bytes, int] = defaultdict(int)
    for _ in range(1000):
        if servers.has_ended:
            break
        given = [noted(worker, servers, dice) for worker in workers]
        assert any(batch.real for batch in given)
        for record in (record for batch in given for record in batch.records[: batch.real]):
            trained[record] += 1
        servers.count()
        for worker in workers:
            worker.source.note_trained()
    assert servers.has_ended
    assert trained == {f"{shard}.{n}".encode(): epochs for shard, number in enumerate(sizes) for n in range(number)}
    for worker in workers:
        worker.source.new_life()


def noted(worker: Worker, servers: Servers, dice: random.Random) -> RecordBatch:
    """The batch of a worker, which may die before or after it notes the batch: then it comes again."""
    while dice.random() < 0.1:
        worker.start()
    batch = next(worker.batches)
    servers.pending[worker.index] = batch
    while dice.random() < 0.1:
        worker.start()
        assert next(worker.batches) == batch
    return batch


def test_a_caller_that_rests_waits_for_longer_but_gets_a_batch_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REST_S", 3600.0)
    source = Source(Reader([Shard("a")], lambda shard: iter([b"1"]), 1))
    batches = source.batches(source.new_life())
    assert next(batches) is None
    source.rest(True)
    found: List[Optional[RecordBatch]] = []
    caller = threading.Thread(target=lambda: found.append(next(batches)), daemon=True)
    caller.start()
    caller.join(0.1)
    assert caller.is_alive()
    source.begin(Beginning(False, [Ticket(0, 0, 0)]), lambda: None)
    caller.join(60)
    assert [batch.real for batch in found if batch] == [1]
    source.rest(False)
    assert next(batches) is None
    source.new_life()


def test_an_error_while_reading_reaches_whoever_waits_for_a_batch() -> None:
    def fail(shard: Shard) -> Iterator[bytes]:
        yield b"1"
        raise OSError("the disk is gone")

    source = Source(Reader([Shard("a")], fail, 1))
    life = source.new_life()
    source.begin(Beginning(False, [Ticket(0, 0, 0)]), lambda: None)
    with pytest.raises(OSError, match="the disk is gone"):
        list(source.batches(life))
    assert isinstance(source.error, OSError)


def test_a_life_ends_when_the_next_begins_also_in_the_middle_of_a_question() -> None:
    asked: List[int] = []
    source = Source(Reader([Shard("a")], lambda shard: iter([b"1", b"2"]), 1))
    first = source.new_life()

    def ask() -> Optional[Ticket]:
        asked.append(first)
        second = source.new_life()
        source.begin(Beginning(False, [Ticket(0, 1, 1)]), lambda: None)
        seconds.append(second)
        return Ticket(0, 0, 0)

    seconds: List[int] = []
    source.begin(Beginning(False, []), ask)
    assert set(source.batches(first)) <= {None}
    eventually("the second life", lambda: seconds)
    assert next(batch for batch in source.batches(seconds[0]) if batch is not None).place[:3] == (0, 1, 1)
    source.new_life()
