"""Asynchronous steps over shards lose no example, from each state in which a worker or the chief may have died.

One server and two workers inside this process. Adam without memory adds 1 for any gradient that is not 0, and each
worker has elements of its own: so the variable counts how often each worker trained each example.
"""

import random
import re
import threading
from pathlib import Path
from typing import Any, Iterator, List

import numpy as np
import pytest

from cluster import shards
from cluster.model.job_results import COUNTS, PLACE
from cluster.recommend.once import own_places
from cluster.recommend.once.async_once import OnceAsyncWorker
from cluster.recommend.once.data_once import sources
from cluster.recommend.once.own_places import OwnPlaces
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.steps.base_worker import HoldGate, StepParts
from cluster.steps.exchange import Exchange
from cluster.task import Task
from cluster.variables.local_copies import LocalCopies
from cluster.variables.wire_format import Wire
from tests.cluster.recommend.once.sharded import (
    SHARDS,
    SIZE,
    WORKERS,
    ShardedRun,
    ShardedWorker,
    numbered_files,
)
from tests.cluster.steps.test_sync_worker import filters, together
from tests.support.nightly import few
from tests.support.training.locks import fed_inside
from tests.support.waiting import eventually

EXAMPLES = 25


@pytest.fixture
def files(tmp_path: Path) -> List[str]:
    return numbered_files(tmp_path, EXAMPLES)


class Worker(ShardedWorker):
    """A worker whose gradient of ``ledger`` counts its examples; ``mean`` gets 1 for each mean over its examples."""

    def __init__(self, target: str, container: str, index: int, files: List[str], epochs: int):
        task = Task("worker", index, {"ps": ["a:1"], "worker": ["b:1"] * WORKERS}, SIZE)
        with tf.Graph().as_default() as graph, tf.container(container), tf.device(worker_device("worker", index)):
            with tf.device(ps_device(0)):
                self.global_step = tf.train.get_or_create_global_step()
                zeros = tf.zeros_initializer()
                self.ledger = tf.get_variable("ledger", [WORKERS * EXAMPLES], initializer=zeros)
                self.mean = tf.get_variable("mean", [], initializer=zeros)
            numbers = shards.lines(task, files, lambda lines: {"n": tf.strings.to_number(lines, tf.int64)})
            iterator = tf.data.make_initializable_iterator(numbers.prefetch(1))
            batch = iterator.get_next()
            weight = tf.reduce_sum(batch[COUNTS]) / SIZE
            places = tf.one_hot(batch["n"] + index * EXAMPLES, WORKERS * EXAMPLES)
            part = tf.reduce_sum(places * batch[COUNTS][:, tf.newaxis], 0) / SIZE
            self.places = OwnPlaces(sources(graph)[0], batch[PLACE], task, self.global_step, epochs)
            pairs = [(-part, self.ledger), (-weight, self.mean)]
            exchange = Exchange(LocalCopies([], {}, worker_device("worker", index)), Wire())
            parts = StepParts(
                Both(), pairs, self.global_step, tf.constant(0.0), WORKERS, index, exchange, weight=weight
            )
            self.stepper = OnceAsyncWorker(parts, HoldGate(task), self.places)
            self._make_late_move()
            self._initialise = [tf.global_variables_initializer(), *[each.initializer for each in self.places.saved]]
            self.session = tf.Session(target, graph=graph, config=tf.ConfigProto(device_filters=filters(index)))
        self.session.run(iterator.initializer)

    def _make_late_move(self) -> None:
        """Make what moves the place of any row, as a step does at its end."""
        self.late_row = tf.placeholder(tf.int64, [6])
        row, self.places._row = self.places._row, self.late_row
        self.late_move = self.places.move_own([])
        self.places._row = row


class Both(tf.train.Optimizer):  # type: ignore[misc]
    """The ledger by the sign of its gradient, the mean by its gradient.

    Both lock: else Adam of one worker could take the moments that the other's has just written, and count its batch.
    """

    def __init__(self) -> None:
        super().__init__(False, "Both")

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        first, second = grads_and_vars
        sign = tf.train.AdamOptimizer(1.0, beta1=0.0, beta2=0.0, epsilon=1e-12, use_locking=True)
        mean = tf.train.GradientDescentOptimizer(1.0, use_locking=True)
        return tf.group(sign.apply_gradients([first]), mean.apply_gradients([second]))


class Run(ShardedRun[Worker]):
    """A run whose workers may also be replaced by some that are made before."""

    kind = Worker

    def replace_by(self, index: int, new: Worker) -> None:
        self.workers[index].end()
        self.workers[index] = new

    def read(self, name: str) -> Any:
        return self.workers[0].session.run(getattr(self.workers[0], name))

    def twice(self) -> int:
        """How many examples counted twice; each counted at least once."""
        counts = self.read("ledger").reshape([WORKERS, EXAMPLES]).sum(0).round(3)
        assert counts.min() >= 1, counts
        assert self.workers[0].session.run(self.workers[0].places.progress).tolist() == [[1, 0]] * SHARDS
        return int((counts - 1).sum())


@pytest.fixture
def run(targets: List[str], files: List[str]) -> Iterator[Run]:
    made = Run(targets, files)
    yield made
    made.end()


def named(printed: str) -> int:
    """How many examples the log names that may count twice."""
    return sum(int(end) - int(begin) + 1 for begin, end in re.findall(r"records (\d+) to (\d+) .*twice", printed))


def test_a_pass_counts_every_example_once_and_each_batch_as_the_mean_of_its_examples(run: Run) -> None:
    run.finish()
    assert run.twice() == 0
    assert run.read("mean") == run.read("global_step")  # also for batches that are not full


def test_a_worker_without_a_shard_waits_for_the_end_and_counts_no_step(run: Run) -> None:
    chief, other = run.workers
    other.step()  # it has a shard, of which it trains no more until the chief waits

    def wait() -> None:
        while (chief.stepper.waited_s or 0) < 1.0:  # more empty batches than are read ahead
            chief.step()

    together(wait)
    assert not chief.stepper.has_ended
    run.finish()
    assert run.twice() == 0 and run.read("mean") == run.read("global_step")


def test_others_train_one_epoch_more_than_a_worker_that_does_nothing_and_then_wait_for_it(
    targets: List[str], files: List[str]
) -> None:
    run = Run(targets, files, epochs=4)
    chief, other = run.workers
    other.step()

    def wait() -> None:
        while (chief.stepper.waited_s or 0) < 1.0:
            chief.step()

    together(wait)
    epochs = chief.session.run(chief.places.progress)[:, 0].tolist()
    assert min(epochs) == 0 and set(epochs) <= {0, 2}, epochs
    run.finish()
    assert chief.session.run(chief.places.progress).tolist() == [[4, 0]] * SHARDS
    assert (run.read("ledger").reshape([WORKERS, EXAMPLES]).sum(0).round(3) == 4).all()
    run.end()


@pytest.mark.parametrize(
    ("state", "twice", "seed"),
    few(
        [(*state, seed) for state in (("computed", 0), ("noted", 0), ("applied", 1)) for seed in range(4)],
        [("computed", 0, 0), ("noted", 0, 2), ("applied", 1, 0)],
    ),
)
def test_what_a_worker_had_not_moved_is_trained_again_and_named(
    run: Run, state: str, twice: int, seed: int, capsys: Any
) -> None:
    dice = random.Random(f"died {seed}")
    index, steps = dice.randrange(WORKERS), dice.randint(0, 3)
    dead = run.workers[index]
    for _ in range(steps):
        dead.step()
    dead.stepper._places.source.next_real()
    done = {"computed": dead.stepper._gradients, "noted": dead.stepper._noted, "applied": dead.stepper._applied}[state]
    dead.session.run(done)
    capsys.readouterr()
    run.replace(index).join()
    found = named(capsys.readouterr().out)
    run.finish()
    assert found == (0 if state == "computed" else min(found, SIZE)) and (found > 0) == (state != "computed")
    assert run.twice() == twice * found


def test_what_a_replaced_worker_has_left_on_its_way_moves_nothing(run: Run) -> None:
    old = run.workers[1]
    old.session.run(old.stepper._applied)
    row = old.session.run(old.places._pending)[1]
    new = run.replace(1)
    new.join()
    before = new.session.run(new.places.progress)
    new.session.run(new.late_move, {new.late_row: row})
    np.testing.assert_array_equal(new.session.run(new.places.progress), before)
    run.finish()
    assert run.twice() == row[4] - row[3]


def test_a_step_that_a_replaced_worker_has_left_waiting_is_refused_and_its_turn_goes_on(run: Run) -> None:
    old = run.workers[1]
    refused: List[Any] = []

    def wait() -> None:
        with pytest.raises(tf.errors.InvalidArgumentError, match="that continues the progress") as error:
            old.session.run(old.stepper._noted)
        refused.append(error)

    with run.workers[0].stepper.paused(run.workers[0].session):
        waiting = threading.Thread(target=wait)
        waiting.start()
        new = run._worker(1)
        new.join()
    waiting.join(60)
    assert len(refused) == 1
    run.replace_by(1, new)
    run.finish()
    assert run.twice() == 0


def test_no_worker_applies_a_gradient_while_the_chief_saves(run: Run) -> None:
    chief, other = run.workers
    other.step()  # the first step takes longest
    before = run.read("ledger")
    running = threading.Thread(target=other.step)
    with chief.stepper.paused(chief.session):
        assert chief.stepper.owes(chief.session) is False
        running.start()
        running.join(2.0)
        assert running.is_alive()
        np.testing.assert_array_equal(run.read("ledger"), before)
    running.join(60)
    assert not running.is_alive()
    run.finish()
    assert run.twice() == 0


def test_a_save_waits_for_the_place_of_a_gradient_that_is_being_applied(run: Run) -> None:
    chief, other = run.workers
    other.session.run(other.stepper._applied)
    other.places.source.note_trained()
    row = chief.session.run(chief.places._pending)[1]
    entered = threading.Event()

    def save() -> None:
        with chief.stepper.paused(chief.session):
            entered.set()

    saving = threading.Thread(target=save)
    saving.start()
    eventually("the pause", lambda: other.session.run(other.places.is_paused))
    assert not entered.wait(0.3)
    other.session.run(other.late_move, {other.late_row: row})
    saving.join(60)
    assert entered.is_set()
    run.finish()
    assert run.twice() == 0


def test_a_save_names_what_a_dead_worker_may_have_applied_and_goes_on(
    run: Run, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_places, "_APPLYING_S", 0.1)
    chief, other = run.workers
    other.session.run(other.stepper._noted)
    with chief.stepper.paused(chief.session):
        assert named(capsys.readouterr().out) == SIZE
    chief.step()
    run.replace(1).join()
    run.finish()
    assert run.twice() == 0


def test_the_next_chief_ends_the_save_of_one_that_died_in_it(run: Run) -> None:
    chief, other = run.workers
    chief.session.run(chief.places._pause)
    chief.session.run(chief.places._seen)  # it has all turns
    stopped: List[Any] = []

    def wait_and_join_again() -> None:
        with pytest.raises(tf.errors.AbortedError):
            other.step()
        stopped.append(True)

    waiting = threading.Thread(target=wait_and_join_again)
    waiting.start()
    run.replace(0).join()
    waiting.join(60)
    assert stopped == [True]
    run.replace(1).join()
    run.finish()
    assert run.twice() == 0


@pytest.mark.parametrize("index", range(WORKERS))
def test_no_lock_waits_for_what_a_session_that_closes_may_leave_out(run: Run, index: int) -> None:
    assert fed_inside(run.workers[index].session.graph) == []
