"""Files that arrive while training goes on are trained once, whoever dies, and nobody trains without a record."""

import math
import os
import random
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Set

import numpy as np
import pytest

from cluster import shards
from cluster.errors import TrainingError
from cluster.recommend.once import arrivals, shard_places
from cluster.recommend.once.arrivals import NO_SHARD, ArrivingShards, Registrar
from cluster.recommend.once.shard_files import Reader, cut_file, read_lines, whole_file
from cluster.task import Task
from tests.cluster.recommend.once import test_async_steps, test_once_steps
from tests.cluster.steps.test_sync_worker import together
from tests.support.waiting import eventually


def put(folder: Path, name: str, numbers: Any) -> None:
    """Let a file arrive: whole, by its name."""
    (folder / "part").write_text("".join(f"{number}\n" for number in numbers))
    (folder / "part").rename(folder / name)


def found_in(folder: Path, bytes_of_a_shard: int = 8) -> ArrivingShards:
    return ArrivingShards(str(folder / "*.txt"), lambda path: cut_file(path, bytes_of_a_shard), bytes_of_a_shard)


class Servers:
    """The places of shards on the servers: their digests, and which are trained."""

    def __init__(self, places: int):
        self.digests, self.is_trained = np.full(places, NO_SHARD, np.int64), np.zeros(places, bool)
        self.uses = np.zeros(places, np.int64)
        self.lag: Dict[str, float] = {}

    def registrar(self, shards: ArrivingShards) -> Registrar:
        def register(places: List[int], digests: List[int]) -> None:
            assert len(set(places)) == len(places) == len(digests)
            assert all(self.digests[place] == NO_SHARD or self.is_trained[place] for place in places)
            self.digests[places], self.is_trained[places] = digests, False

        return Registrar(shards, self.digests, register, self.uses_or_none, self.waiting, self.lag)

    def train(self, place: int) -> None:
        self.is_trained[place] = True
        self.uses[place] += 1

    def uses_or_none(self) -> Any:
        return np.where(self.is_trained, self.uses, -1)

    def waiting(self) -> List[int]:
        return [int(digest) for digest in self.digests[~self.is_trained] if digest != NO_SHARD]


@pytest.mark.parametrize("seed", range(20))
def test_each_file_has_places_until_it_is_trained_and_gone(seed: int, tmp_path: Path) -> None:
    dice, servers = random.Random(seed), Servers(20)
    lines: Set[bytes] = set()
    shards = found_in(tmp_path)
    registrar, worker = servers.registrar(shards), found_in(tmp_path)
    for turn in range(60):
        if dice.random() < 0.4 and len(list(tmp_path.iterdir())) < 4:
            numbers = [100 * turn + each for each in range(dice.randint(1, 9))]
            put(tmp_path, f"{turn:03}.txt", numbers)
            lines |= {str(each).encode() for each in numbers}
        if dice.random() < 0.1:  # another chief
            registrar = servers.registrar(found_in(tmp_path))
        registrar.look()
        registrar.look()
        assert servers.lag["waiting_shards"] == len(servers.waiting()) and 0 <= servers.lag["lag_s"] < 60
        worker.learn(dict(enumerate(servers.digests.tolist())))
        waiting = [place for place in range(20) if servers.digests[place] != NO_SHARD and not servers.is_trained[place]]
        for place in dice.sample(waiting, len(waiting) // 2):
            for line in read_lines(worker[place]):
                lines.remove(line)  # once
            servers.train(place)
        there = list(shards.look().values())
        left = {servers.digests[place] for place in range(20) if not servers.is_trained[place]}
        for path in {shard.path for shard in there}:
            if not left & {digest for digest, shard in shards.look().items() if shard.path == path}:
                Path(path).unlink()
    assert len(lines) < 60


def test_places_are_used_again_in_the_order_of_their_files(tmp_path: Path) -> None:
    servers = Servers(3)
    registrar = servers.registrar(found_in(tmp_path))
    taken = []
    for number in range(8):
        put(tmp_path, f"{number}.txt", [number])
        registrar.look()
        (place,) = np.flatnonzero((servers.digests != NO_SHARD) & ~servers.is_trained)
        taken.append(int(place))
        servers.train(int(place))
        (tmp_path / f"{number}.txt").unlink()
    assert taken == [0, 1, 2, 0, 1, 2, 0, 1]


def test_files_of_the_same_name_and_size_in_several_folders_are_several_files(tmp_path: Path) -> None:
    for host, day in (("chief", "monday"), ("chief", "tuesday"), ("other", "tuesday")):
        (tmp_path / host / day).mkdir(parents=True)
        put(tmp_path / host / day, "part-0.txt", [1])
    found = [
        ArrivingShards(str(tmp_path / host / "*" / "part-*.txt"), whole_file, 0).look() for host in ("chief", "other")
    ]
    assert [os.path.relpath(each.path, tmp_path) for each in found[0].values()] == [
        "chief/monday/part-0.txt",
        "chief/tuesday/part-0.txt",
    ]
    assert list(found[1]) == list(found[0])[1:]


def test_more_shards_than_places_are_refused(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", range(100, 110))
    with pytest.raises(TrainingError, match="expected at most 3 shards of files that are there, found 2 more"):
        Servers(3).registrar(found_in(tmp_path)).look()


def test_shards_of_another_size_or_order_do_not_continue_a_run(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", range(10))
    kinds = [(8, 0, 0), (9, 0, 0), (8, 5, 0), (8, 5, 1)]
    found = {
        Reader(found_in(tmp_path, bytes_of_a_shard), read_lines, 2, shuffle, seed, b"1").digest()
        for bytes_of_a_shard, shuffle, seed in kinds
    }
    assert len(found) == len(kinds)


def test_a_shard_whose_file_another_host_has_is_waited_for(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(arrivals, "_WAIT_S", 0.5)
    monkeypatch.setattr(arrivals, "_POLL_S", 0.01)
    for name in ("chief", "other"):
        (tmp_path / name).mkdir()
    put(tmp_path / "chief", "a.txt", [1])
    here, there = found_in(tmp_path / "chief"), found_in(tmp_path / "other")
    (digest,) = here.look()
    there.learn({5: digest})
    threading.Timer(0.1, lambda: put(tmp_path / "other", "a.txt", [1])).start()
    assert list(read_lines(there[5])) == [b"1"]
    there.learn({6: digest + 1})
    with pytest.raises(TrainingError, match=r"expected the file of shard 6 at .*, found none of its name and size"):
        there[6]


def test_a_worker_begins_with_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    task: Any = Task("worker", 0, {"ps": ["a:1"], "worker": ["b:1"]}, 2)
    with pytest.raises(TrainingError, match=r"expected at least one file with records at .*, found none"):
        shards.lines(task, shards.arriving(str(tmp_path / "*.txt")), lambda lines: {"n": lines})
    (tmp_path / "folder").mkdir()
    assert ArrivingShards(str(tmp_path / "*"), whole_file, 0).look() == {}
    put(tmp_path, "b.txt", [1])
    assert found_in(tmp_path).sample(read_lines) == b"1"


def go_on(worker: Any, is_over: Callable[[], bool]) -> None:
    while not is_over():
        worker.step()


def train_until(run: Any, number: int) -> None:
    over = threading.Event()
    threads = [threading.Thread(target=go_on, args=(worker, over.is_set)) for worker in run.workers]
    for thread in threads:
        thread.start()
    try:
        eventually(f"{number} examples are trained", lambda: sum(counts(run)[0]) == number)
    finally:
        over.set()
        for thread in threads:
            thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


KINDS: Dict[str, Any] = {"synchronous": test_once_steps, "asynchronous": test_async_steps}


@pytest.mark.parametrize("kind", list(KINDS))
def test_each_example_of_each_file_counts_once_while_workers_come_and_go(
    kind: str, targets: List[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(arrivals, "MOST_ARRIVED", 3)  # places: a later file takes that of one that is gone
    files: Any = shards.arriving(str(tmp_path / "*.txt"))
    put(tmp_path, "0.txt", range(7))
    run = KINDS[kind].Run(targets, files, epochs=None)

    try:
        train_until(run, 7)
        put(tmp_path, "1.txt", range(7, 12))
        put(tmp_path, "2.txt", range(12, 15))
        train_until(run, 15)
        if kind == "synchronous":  # a rest takes no step, and so gets nothing of one
            worker = run.workers[0]
            step = int(worker.session.run(worker.global_step))
            found = worker.stepper.step(worker.session, worker.optimizer.next_token)
            assert found[0] == step and math.isnan(found[1]) and found[2] is None
        for path in tmp_path.glob("[01].txt"):
            path.unlink()
        for index in (1, 0):
            run.replace(index).join()
            put(tmp_path, f"{4 - index}.txt", [16 - index])
            train_until(run, 17 - index)
        assert counts(run) == [[1.0] * 17 + [0.0] * (len(each) - 17) for each in counts(run)]
        places = run.workers[0].places
        arrived, progress = run.workers[0].session.run([places._arrived, places.progress])
        assert (arrived == progress[:, 2]).all() and (arrived != NO_SHARD).all()
    finally:
        run.end()


@pytest.mark.parametrize("kind", list(KINDS))
def test_training_waits_also_where_all_files_are_trained_and_gone(
    kind: str, targets: List[str], tmp_path: Path
) -> None:
    files: Any = shards.arriving(str(tmp_path / "*.txt"))
    put(tmp_path, "0.txt", [0])
    run = KINDS[kind].Run(targets, files, epochs=None)
    try:
        train_until(run, 1)
        (tmp_path / "0.txt").unlink()
        for _ in range(3):
            together(*[worker.step for worker in run.workers])
        put(tmp_path, "1.txt", [1])
        train_until(run, 2)
    finally:
        run.end()


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_worker_to_whose_host_a_file_comes_late_is_not_frozen(
    kind: str, targets: List[str], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(shard_places, "LOOK_S", 0.1)
    files: Any = shards.arriving(str(tmp_path / "*.txt"))
    put(tmp_path, "0.txt", [0])
    run = KINDS[kind].Run(targets, files, epochs=None)
    try:
        train_until(run, 1)
        worker = run.workers[1]
        monkeypatch.setattr(worker.places._arriving, "_pattern", str(tmp_path / "late" / "*.txt"))
        monkeypatch.setattr(worker.places._arriving, "_root", str(tmp_path / "late"))
        assert run.workers[0].places.source.next_real() == 0  # so the chief asks for no shard until it steps
        put(tmp_path, "1.txt", [1])
        over = threading.Event()
        waiting = threading.Thread(target=go_on, args=(worker, over.is_set), daemon=True)
        waiting.start()
        eventually("it has the file", lambda: 1 in worker.session.run(worker.places._owner))
        eventually("it waits", lambda: not worker.stepper.owes(worker.session))
        (tmp_path / "late").mkdir()
        put(tmp_path / "late", "1.txt", [1])
        go_on(run.workers[0], lambda: sum(counts(run)[0]) == 2)
        over.set()
        waiting.join(60)
    finally:
        run.end()


def test_a_chief_without_records_does_not_wait_for_the_gradients_of_a_step(targets: List[str], tmp_path: Path) -> None:
    files: Any = shards.arriving(str(tmp_path / "*.txt"))
    put(tmp_path, "0.txt", [0])
    run = test_once_steps.Run(targets, files, epochs=1)
    try:
        train_until(run, 1)
        chief = run.workers[0]
        with chief.session.graph.as_default():
            norm = chief.stepper.scalars()["gradient_norm"]
        resting = threading.Thread(target=lambda: chief.stepper.step(chief.session, norm), daemon=True)
        resting.start()
        resting.join(20)
        assert not resting.is_alive()
        put(tmp_path, "1.txt", [1])
        train_until(run, 2)
    finally:
        run.end()


def counts(run: Any) -> List[List[float]]:
    """How often each example counted."""
    if isinstance(run, test_once_steps.Run):
        return run.counts()
    worker = run.workers[0]
    found = worker.session.run(worker.ledger)
    return [found.reshape([2, -1]).sum(0).round(3).tolist()]
