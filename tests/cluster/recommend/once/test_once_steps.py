"""No example is lost or counted twice, from each state in which a worker or the chief may have died.

One server and two workers inside this process. Adam without memory adds 1 for any gradient that is not 0, and each
worker has elements of its own: so the variables count how often each worker trained each example.
"""

from pathlib import Path
from typing import Any, Iterator, List

import pytest

from cluster import shards
from cluster.model.job_results import COUNTS, PLACE
from cluster.recommend.once.data_once import sources
from cluster.recommend.once.once_steps import OnceWorker
from cluster.recommend.once.place_rows import FREE
from cluster.recommend.once.shard_places import Places
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.steps.base_worker import StepParts, TornStepError
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
from tests.cluster.steps.test_sync_worker import GIVES_MS, filters, together, wait_in_vain
from tests.support.nightly import few
from tests.support.training.locks import fed_inside

EXAMPLES = 24
ROUNDS = 200  # of two steps that meet within microseconds
UNIT = 1 / (SIZE * WORKERS)  # the part of an example in the mean


@pytest.fixture
def files(tmp_path: Path) -> List[str]:
    return numbered_files(tmp_path, EXAMPLES)


class Worker(ShardedWorker):
    """A worker whose gradient of ``a`` and ``b``, with the learning rate 1, counts its examples."""

    def __init__(self, target: str, container: str, index: int, files: List[str], epochs: int = 1):
        task = Task("worker", index, {"ps": ["a:1"], "worker": ["b:1"] * WORKERS}, SIZE)
        with tf.Graph().as_default() as graph, tf.container(container), tf.device(worker_device("worker", index)):
            with tf.device(ps_device(0)):
                self.global_step = tf.train.get_or_create_global_step()
                self.variables = [
                    tf.get_variable(name, [WORKERS * EXAMPLES], initializer=tf.zeros_initializer()) for name in "ab"
                ]
            numbers = shards.lines(task, files, lambda lines: {"n": tf.strings.to_number(lines, tf.int64)})
            iterator = tf.data.make_initializable_iterator(numbers.prefetch(1))
            batch = iterator.get_next()
            counts = batch[COUNTS]
            part = (
                tf.reduce_sum(tf.one_hot(batch["n"] + index * EXAMPLES, WORKERS * EXAMPLES) * counts[:, tf.newaxis], 0)
                * UNIT
            )
            self.places = Places(sources(graph)[0], batch[PLACE], task, self.global_step, epochs)
            sign = tf.train.AdamOptimizer(1.0, beta1=0.0, beta2=0.0, epsilon=1e-12)
            pairs = [(-part, variable) for variable in self.variables]
            parts = StepParts(
                sign, pairs, self.global_step, tf.constant(0.0), WORKERS, index,
                Exchange(LocalCopies([], {}, ""), Wire()), weight=tf.reduce_sum(counts) * UNIT,
            )  # fmt: skip
            self.stepper = OnceWorker(parts, self.places)
            self.optimizer = self.stepper._optimizer
            self._initialise = [tf.global_variables_initializer(), *[each.initializer for each in self.places.saved]]
            self.begin = tf.assign_add(self.places._begun, 1)
            self.session = tf.Session(target, graph=graph, config=tf.ConfigProto(device_filters=filters(index)))
        self.session.run(iterator.initializer)

    def join_and_run_to_the_end(self) -> None:
        self.join()
        self.run_to_the_end()

    def gives(self) -> List[Any]:
        """The operations by which it gives to each accumulator, the gate's last."""
        return [op for op in self.session.graph.get_operations() if op.type == "AccumulatorApplyGradient"]

    def die_waiting(self) -> None:
        """Gives its gradient and is gone before its token comes."""
        wait_in_vain(self.session, self.stepper._token)
        self.end()


class Run(ShardedRun[Worker]):
    """A run, and how often its examples counted."""

    kind = Worker

    def counts(self) -> List[List[float]]:
        """How often each example counted, by each variable, whichever worker trained it."""
        found = [self.workers[0].session.run(each) for each in self.workers[0].variables]
        return [each.reshape([WORKERS, EXAMPLES]).sum(0).round(3).tolist() for each in found]


@pytest.fixture
def run(targets: List[str], files: List[str]) -> Iterator[Run]:
    made = Run(targets, files)
    yield made
    made.end()


def test_a_pass_counts_every_example_once_and_all_workers_see_its_end(run: Run) -> None:
    together(*[worker.run_to_the_end for worker in run.workers])
    assert run.counts() == [[1.0] * EXAMPLES] * 2
    assert run.workers[0].session.run(run.workers[0].places.progress).tolist() == [[1, 0]] * SHARDS


@pytest.mark.parametrize(
    ("pushes", "index"), few([(1, 0), (3, 0), (4, 0), (1, 1), (3, 1), (4, 1)], [(1, 0), (3, 1), (4, 0)])
)
def test_a_worker_that_died_among_its_pushes_gives_the_same_batch_again(run: Run, index: int, pushes: int) -> None:
    together(*[worker.step for worker in run.workers])
    dead = run.workers[index]
    dead.session.run(dead.gives()[:pushes])
    other = run.workers[1 - index]
    together(lambda: run.replace(index).join_and_run_to_the_end(), other.run_to_the_end)
    assert run.counts() == [[1.0] * EXAMPLES] * 2


@pytest.mark.parametrize("index", [0, 1])
def test_a_worker_that_died_waiting_for_its_token_counts_once(run: Run, index: int) -> None:
    run.workers[index].die_waiting()
    other = run.workers[1 - index]
    together(lambda: run.replace(index).join_and_run_to_the_end(), other.run_to_the_end)
    assert run.counts() == [[1.0] * EXAMPLES] * 2


def test_a_count_of_a_worker_that_has_died_which_comes_late_keeps_no_later_process_waiting(run: Run) -> None:
    chief, dead = run.workers
    with dead.session.graph.as_default():
        count = dead.optimizer._count([])
    sent = {dead.optimizer._stamp: dead.session.run(dead.optimizer._stamp)}
    together(dead.step, chief.step)
    dead.session.run(count, sent)
    together(lambda: run.replace(1).join_and_run_to_the_end(), chief.run_to_the_end)
    assert run.counts() == [[1.0] * EXAMPLES] * 2


def test_a_chief_does_not_join_a_step_that_was_begun_and_not_counted(run: Run) -> None:
    run.workers[0].session.run(run.workers[0].begin)
    with pytest.raises(TornStepError):
        run.replace(0).join()


def test_a_chief_does_not_join_a_step_of_which_gradients_were_taken(run: Run) -> None:
    run.workers[1].die_waiting()
    run.workers[0].session.run(run.workers[0].optimizer.empty[1], options=tf.RunOptions(timeout_in_ms=10 * GIVES_MS))
    with pytest.raises(TornStepError):
        run.replace(0).join()


def test_a_worker_that_is_replaced_gets_no_shard_by_a_question_that_comes_late(run: Run) -> None:
    old = run.workers[1]
    life = int(old.session.run(old.places._lives)[1])
    together(lambda: run.replace(1).join())
    new = run.workers[1]
    for shard in range(SHARDS):
        free = new.places._ask(new.session, life)
        assert free is None, shard


def test_a_worker_that_looks_for_a_shard_while_its_last_records_are_counted_gets_none(run: Run) -> None:
    """And keeps it free: a shard that is written back as owned would be nobody's in the next epoch."""
    chief = run.workers[0]
    places = chief.places
    with chief.session.graph.as_default():
        begun = [tf.assign(places.progress, [[0, 6], [1, 0], [1, 0]]).op, tf.assign(places._owner, [1, 0, 0]).op]
        ended = places.move(tf.constant([[0, 0, 0, 6, 8, 1], [0, -1, 0, 0, 0, 0]], tf.int64))
    life = int(chief.session.run(places._lives)[0])

    def ask_often() -> List[Any]:
        return [places._ask(chief.session, life) for _ in range(8)]

    for _ in range(ROUNDS):
        chief.session.run(begun)
        tickets, _ = together(ask_often, lambda: chief.session.run(ended))
        assert tickets == [None] * 8
        assert chief.session.run(places._owner)[0] == FREE


def test_a_worker_does_not_join_while_a_step_moves_its_places(run: Run) -> None:
    chief, other = run.workers
    chief.session.run(chief.begin)
    with pytest.raises(tf.errors.AbortedError):
        other.join()


def test_no_lock_waits_for_what_a_session_that_closes_may_leave_out(run: Run) -> None:
    assert fed_inside(run.workers[0].session.graph) == []


def test_a_step_of_batches_that_do_not_follow_the_progress_changes_nothing(run: Run) -> None:
    chief, other = run.workers
    together(chief.step, other.step)
    before = run.counts()
    with chief.session.graph.as_default():
        chief.session.run(tf.assign(chief.places.progress, [[0, 1]] * SHARDS))

    def fail() -> None:
        reason = "every batch begins where the progress of its shard ends"
        with pytest.raises(tf.errors.InvalidArgumentError, match=reason):
            chief.step()

    together(fail, other.die_waiting)
    assert run.counts() == before
