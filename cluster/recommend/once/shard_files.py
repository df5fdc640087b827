"""Cut files into shards, and read a shard's records in batches. Plain Python: no graph, no session.

The order of a shard's records is a function of the file, of ``seed`` and of the epoch. So one number is enough for the
progress of a shard in an epoch: how many of its records have been trained.
"""

import gzip
import hashlib
import os
from dataclasses import dataclass
from itertools import islice
from typing import IO, Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, cast

import numpy as np

MOST_SHARDS = 1_000_000
Read = Callable[[str], Iterable[bytes]]  # the records of a file, by its path


class Shard(NamedTuple):
    """A shard: a whole file, or the lines of a file that begin in the bytes from ``begin`` to before ``end``.

    If ``end`` is None, the shard extends to the end of the file.
    """

    path: str
    begin: int = 0
    end: Optional[int] = None


class ShardPlace(NamedTuple):
    """The position of one batch: it has the records of a shard from ``begin`` to before ``end``, in ``epoch``.

    ``shard`` is the index of the shard, or -1 for a batch of copies, in which no record counts.
    """

    shard: int
    epoch: int
    begin: int
    end: int
    is_last: bool  # no record of this epoch follows in the shard


class Ticket(NamedTuple):
    """The right of one worker to train a shard in one epoch, from record ``begin`` on."""

    shard: int
    epoch: int
    begin: int


class RecordBatch(NamedTuple):
    """The records of one batch of a worker; every batch has the same number of records.

    Only the first ``real`` records count. The others are copies of one record, which fill the batch.
    """

    records: List[bytes]
    real: int
    place: ShardPlace


NOTHING = ShardPlace(-1, 0, 0, 0, False)  # of a batch without a record that counts


def shards_of(paths: Iterable[str], cut: Callable[[str], Iterable[Shard]]) -> List[Shard]:
    """Return the shards of files; ``cut`` yields those of one file, none of an empty one.

    Raises:
      OSError: a file cannot be read.
      ValueError: there are too many shards, or none.
    """
    paths = list(paths)
    shards = list(islice((shard for path in paths for shard in cut(path)), MOST_SHARDS + 1))
    if len(shards) > MOST_SHARDS:
        raise ValueError(f"shards: expected at most {MOST_SHARDS:,}, found more; use larger shards, or fewer files")
    if not shards:
        raise ValueError(f"shards: expected at least one file with records, found none among {len(paths)} files")
    return shards


def whole_file(path: str) -> Iterator[Shard]:
    """Yield one shard of a file that is not empty."""
    if os.path.getsize(path):
        yield Shard(path)


def cut_file(path: str, shard_bytes: int) -> Iterator[Shard]:
    """Yield the shards of one text file: ranges of whole lines, of about ``shard_bytes`` each; one if it is gzipped."""
    size = os.path.getsize(path)
    if path.endswith(".gz"):
        with _opened(path) as file:
            if file.read(1):
                yield Shard(path)
        return
    starts = list(_line_starts(path, size, shard_bytes))
    for begin, end in zip(starts, [*starts[1:], size]):
        yield Shard(path, begin, end)


def _line_starts(path: str, size: int, shard_bytes: int) -> Iterator[int]:
    """Yield where each shard of a text file begins: at the first line after every ``shard_bytes``."""
    with open(path, "rb") as file:
        start = 0
        while start < size:
            yield start
            file.seek(start + shard_bytes - 1)
            file.readline()
            start = file.tell() if start + shard_bytes < size else size


def read_lines(shard: Shard) -> Iterator[bytes]:
    """Yield the lines of ``shard``, without their line ends."""
    with _opened(shard.path) as file:
        file.seek(shard.begin)
        left = shard.end - shard.begin if shard.end is not None else None
        for line in file:
            if left is not None and left <= 0:
                return
            left = None if left is None else left - len(line)
            yield line.rstrip(b"\n").rstrip(b"\r") if line.endswith(b"\n") else line


def _opened(path: str) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path, "rb")) if path.endswith(".gz") else open(path, "rb")


@dataclass(frozen=True)
class Reader:
    """A reader of the records of ``shards``, by their numbers, in batches of ``batch_size`` records.

    ``read`` yields the records of a shard in the order of the file. ``shuffle`` is the number of consecutive records
    that are shuffled together; 0 keeps the order of the file. ``seed`` is the seed of the shuffled order. ``sample`` is
    any record, where files arrive during training: then the shards are ``ArrivingShards``.
    """

    shards: Any  # List[Shard] or ArrivingShards
    read: Callable[[Shard], Iterable[bytes]]
    batch_size: int
    shuffle: int = 0
    seed: int = 0
    sample: Optional[bytes] = None

    @property
    def awaits_file(self) -> bool:
        """Return whether a file that other hosts have is awaited on this one."""
        return self.sample is not None and bool(self.shards.awaits_file)

    def records(self, shard: int, epoch: int) -> Iterator[bytes]:
        """Yield the records of the shard with the index ``shard``, in their order in ``epoch``."""
        given = iter(self.read(self.shards[shard]))
        if not self.shuffle:
            yield from given
            return
        random = np.random.RandomState(digest_of(self.seed, epoch, shard) % (1 << 32))
        block = list(islice(given, self.shuffle))
        while block:
            yield from (block[index] for index in random.permutation(len(block)))
            block = list(islice(given, self.shuffle))

    def batches(self, ticket: Ticket) -> Iterator[RecordBatch]:
        """Yield batches of the records of one shard in one epoch, from the record ``begin`` on, as ``ticket`` states.

        Every batch has ``batch_size`` records, all of this shard. Copies of a record, which do not count, fill the last
        batch.

        Raises:
          ValueError: the shard has no record from ``begin`` on, because its file has changed.
        """
        records, begin = self.records(ticket.shard, ticket.epoch), ticket.begin
        skipped = sum(1 for _ in islice(records, begin))
        real = list(islice(records, self.batch_size))
        if skipped < begin or not real:
            raise ValueError(
                f"{self.shards[ticket.shard].path}: expected more than {begin} records from byte"
                f" {self.shards[ticket.shard].begin} on, found {skipped}; the files of a run must not change"
            )
        while real:
            following = list(islice(records, self.batch_size))
            end = begin + len(real)
            place = ShardPlace(ticket.shard, ticket.epoch, begin, end, not following)
            yield RecordBatch(self._padded(real), len(real), place)
            real, begin = following, end

    def empty(self) -> RecordBatch:
        """Return a batch in which no record counts: all are copies of the sample, or of the first shard's first record.

        Raises:
          ValueError: the first shard has no record.
        """
        first: Optional[bytes] = self.sample
        if first is None:
            first = next(iter(self.read(self.shards[0])), None)
        if first is None:
            raise ValueError(f"{self.shards[0].path}: expected at least one record, found none; leave the file out")
        return RecordBatch(self._padded([first]), 0, NOTHING)

    def _padded(self, real: List[bytes]) -> List[bytes]:
        return real + real[:1] * (self.batch_size - len(real))

    def digest(self) -> int:
        """Return a 63-bit hash that identifies the data and their order.

        The hash depends on the names and sizes of the files, the ranges of the shards, ``shuffle`` and ``seed``. Where
        files arrive during training, it depends on the last two, and on the size of shards.
        """
        if self.sample is not None:
            return digest_of(self.shards.shard_bytes, self.shuffle, self.seed)
        sizes = {path: os.path.getsize(path) for path in {shard.path for shard in self.shards}}
        files = [(os.path.basename(each.path), sizes[each.path], each.begin, each.end) for each in self.shards]
        return digest_of(files, self.shuffle, self.seed)


def digest_of(*values: Any) -> int:
    """Return an int of 63 bits for some values, the same on every machine."""
    return int.from_bytes(hashlib.sha256(repr(values).encode()).digest()[:8], "little") >> 1
