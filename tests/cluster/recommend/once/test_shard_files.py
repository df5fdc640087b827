"""Shards have every record of the files exactly once, in an order that only seed, epoch and shard decide."""

import gzip
import random
from pathlib import Path
from typing import List

import pytest

from cluster.recommend.once.shard_files import (
    Reader,
    RecordBatch,
    Shard,
    Ticket,
    cut_file,
    read_lines,
    shards_of,
    whole_file,
)


def cut_lines(paths: List[str], shard_bytes: int) -> List[Shard]:
    return shards_of(paths, lambda path: cut_file(path, shard_bytes))


def lines_of(dice: random.Random) -> List[bytes]:
    """Lines of any length, empty ones and such with a carriage return among them."""
    return [
        bytes(dice.choice(b"ab, \r") for _ in range(dice.choice([0, 1, 3, 40]))) for _ in range(dice.randint(1, 30))
    ]


def as_a_plain_program_reads(path: Path) -> List[bytes]:
    text = path.read_bytes()
    found = text.split(b"\n")[: -1 if text.endswith(b"\n") else None]
    return [line.rstrip(b"\r") for line in found[:-1]] + [
        found[-1].rstrip(b"\r") if text.endswith(b"\n") else found[-1]
    ]


@pytest.mark.parametrize("seed", range(200))
def test_ranges_of_lines_have_each_line_once_and_in_order(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    path = tmp_path / "a.txt"
    path.write_bytes(b"\n".join(lines_of(dice)) + dice.choice([b"x", b"x\n"]))
    shards = cut_lines([str(path)], dice.randint(1, 60))
    assert [line for shard in shards for line in read_lines(shard)] == as_a_plain_program_reads(path)
    assert all(list(read_lines(shard)) for shard in shards)


def test_a_compressed_file_is_one_shard_and_an_empty_file_none(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with gzip.open(str(tmp_path / "b.gz"), "wb") as file:
        file.write(b"1\n2\n" * 100)
    with gzip.open(str(tmp_path / "empty.gz"), "wb"):
        pass
    shards = cut_lines([str(tmp_path / name) for name in ("empty", "empty.gz", "b.gz")], 1)
    assert shards == [Shard(str(tmp_path / "b.gz"))]
    assert list(read_lines(shards[0])) == [b"1", b"2"] * 100
    assert shards_of([str(tmp_path / "empty"), str(tmp_path / "b.gz")], whole_file) == shards


def test_files_without_any_record_and_too_many_shards_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "two").write_text("1\n2\n")
    for names in ("", "empty"):
        with pytest.raises(ValueError, match="expected at least one file with records"):
            cut_lines([str(tmp_path / name) for name in names.split()], 100)
    monkeypatch.setattr("cluster.recommend.once.shard_files.MOST_SHARDS", 1)
    with pytest.raises(ValueError, match="expected at most 1, found more"):
        cut_lines([str(tmp_path / "two")], 1)


def reader(records: int, batch_size: int, shuffle: int, seed: int = 0) -> Reader:
    """A reader of three shards whose records are their own names and numbers."""
    shards = [Shard(f"s{index}") for index in range(3)]
    return Reader(
        shards, lambda shard: (f"{shard.path} {n}".encode() for n in range(records)), batch_size, shuffle, seed
    )


def real(batch: RecordBatch) -> List[bytes]:
    return batch.records[: batch.real]


@pytest.mark.parametrize("seed", range(50))
def test_what_is_left_of_a_shard_is_the_same_wherever_the_reading_begins(seed: int) -> None:
    dice = random.Random(seed)
    number, size, shuffle = dice.randint(1, 40), dice.randint(1, 8), dice.choice([0, 1, 5, 100])
    all_records = list(reader(number, 1, shuffle, seed).records(1, 2))
    assert sorted(all_records) == sorted(f"s1 {n}".encode() for n in range(number))
    for begin in range(number):
        batches = list(reader(number, size, shuffle, seed).batches(Ticket(1, 2, begin)))
        assert [record for batch in batches for record in real(batch)] == all_records[begin:]
        assert [batch.place.is_last for batch in batches] == [False] * (len(batches) - 1) + [True]
        assert [batch.place.begin for batch in batches[1:]] == [batch.place.end for batch in batches[:-1]]
        assert (batches[0].place.begin, batches[-1].place.end) == (begin, number)
        assert all(len(batch.records) == size and set(batch.records) == set(real(batch)) for batch in batches)


def test_the_order_is_another_in_each_epoch_shard_and_seed_and_the_same_again() -> None:
    def order(seed: int, shard: int, epoch: int) -> List[bytes]:
        return [record.split()[1] for record in reader(50, 1, 20, seed).records(shard, epoch)]

    orders = [order(seed, shard, epoch) for seed in range(2) for shard in range(2) for epoch in range(2)]
    assert len({tuple(each) for each in orders}) == 8
    assert order(1, 1, 1) == orders[-1]


def test_a_shard_that_has_lost_records_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"s2: expected more than 7 records from byte 0 on, found 4; .* must not change"
    ):
        list(reader(4, 2, 0).batches(Ticket(2, 0, 7)))


def test_an_empty_batch_has_records_of_which_none_counts() -> None:
    batch = reader(4, 3, 0).empty()
    assert batch.records == [b"s0 0"] * 3 and batch.real == 0 and batch.place.shard == -1


def test_other_files_or_another_order_have_another_digest(tmp_path: Path) -> None:
    path = tmp_path / "a"

    def digest(text: str, shuffle: int = 0, seed: int = 0) -> int:
        path.write_text(text)
        return Reader(cut_lines([str(path)], 4), read_lines, 1, shuffle, seed).digest()

    first = digest("1\n2\n3\n")
    assert first == digest("1\n2\n3\n") and -(2**63) <= first < 2**63
    assert len({first, digest("1\n2\n3\n4\n"), digest("1\n2\n3\n", 5), digest("1\n2\n3\n", 5, 1)}) == 4
