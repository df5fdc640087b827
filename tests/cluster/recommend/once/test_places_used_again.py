"""The place of a trained shard has another one later, with all of its records, however the first one ended."""

from pathlib import Path
from typing import Any, List

import pytest

from cluster import shards
from cluster.recommend.once import arrivals, shard_places
from tests.cluster.recommend.once.test_arrivals import KINDS, counts, put, train_until
from tests.cluster.steps.test_sync_worker import together


@pytest.mark.parametrize("kind", list(KINDS))
def test_places_are_used_again_without_end_beside_a_file_that_stays(
    kind: str, targets: List[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(arrivals, "MOST_ARRIVED", 2)
    monkeypatch.setattr(shard_places, "LOOK_S", 0.1)
    files: Any = shards.arriving(str(tmp_path / "*.txt"))
    put(tmp_path, "stays.txt", [0])
    run = KINDS[kind].Run(targets, files, epochs=None)
    try:
        for number in range(1, 7):
            put(tmp_path, f"{number}.txt", [number])
            train_until(run, number + 1)
            (tmp_path / f"{number}.txt").unlink()
    finally:
        run.end()


def test_a_place_whose_last_batch_a_worker_moved_only_in_part_has_all_records_of_its_next_file(
    targets: List[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(arrivals, "MOST_ARRIVED", 1)
    monkeypatch.setattr(shard_places, "LOOK_S", 0.1)
    files: Any = shards.arriving(str(tmp_path / "*.txt"))
    put(tmp_path, "0.txt", range(5))
    run = KINDS["asynchronous"].Run(targets, files, epochs=None)
    try:
        (index,) = run.workers[0].session.run(run.workers[0].places._owner)
        dead = run.workers[index]
        together(dead.step)
        together(dead.step)
        dead.places.source.next_real()
        moves = [each for each in dead.session.graph.get_operations() if writes(each, "shards/progress")]
        dead.session.run(moves[0])  # and no more: the shard keeps its worker, and the row its batch
        (tmp_path / "0.txt").unlink()
        put(tmp_path, "1.txt", range(5, 15))
        run.replace(index).join()
        train_until(run, 15)
        assert counts(run)[0][:15] == [1.0] * 15
    finally:
        run.end()


def writes(operation: Any, variable: str) -> bool:
    return bool(operation.type == "ScatterUpdate" and operation.inputs[0].op.name.endswith(variable))
