"""Steps whose pushes go their way one by one: what they compute, and coming back in the middle of one.

Two servers and up to three workers inside this process. A death in the middle of a step is a session that has
run some of the step's operations and never another.
"""

import threading
import uuid
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping

import numpy as np
import pytest

from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.steps.base_worker import StepParts
from cluster.steps.exchange import WINDOW, Exchange
from cluster.steps.overlapped_sync import OverlappedWorker, may_be_given
from cluster.steps.sync_worker import SyncWorker
from cluster.variables.layout import Bucket
from cluster.variables.local_copies import LocalCopies
from cluster.variables.wire_format import Wire
from tests.cluster.steps.test_sync_worker import Stepping, filters, servers_of, together
from tests.support.nightly import few
from tests.support.waiting import PATIENCE_S, eventually

NAMES = "abcdefgh"
SERVERS = {name: int(name in "gh") for name in NAMES}  # six buckets on one, so that their turns matter
BUCKETS = [Bucket(0, place, (name,)) for place, name in enumerate("abcdef")] + [Bucket(1, 0, ("g", "h"))]


@pytest.fixture(scope="module")
def targets() -> List[str]:
    """The targets of the workers."""
    return servers_of([("ps", 2), ("worker", 3)])


def mirrors_of(copies: LocalCopies) -> Dict[str, Any]:
    """The worker's own variables, by name, which the values that came are loaded into."""
    with tf.device(copies.host):
        mirrors = {
            name: tf.get_variable(
                f"mirrors/{name}",
                variable.shape,
                initializer=tf.zeros_initializer(),
                collections=[],
                use_resource=False,
            )
            for name, variable in copies.variables.items()
        }

    def assign(values: Mapping[str, Any], step: Any) -> Any:
        return tf.group(*[tf.assign(mirror, values[name]).op for name, mirror in mirrors.items()])

    copies.load_into(assign, lambda step: assign(copies.variables, step))
    return mirrors


class Worker(Stepping):
    """Its loss draws each variable to a point of its own; ``index`` says how strongly.

    Before a step it may be told to stop at some point of it: see ``give`` and ``apply``.
    """

    stepper: Any

    def __init__(
        self,
        target: str,
        container: str,
        index: int,
        workers: int = 2,
        overlaps: bool = True,
        make: Any = None,
        wire: str = "float32",
    ):
        self.index = index
        host = worker_device("worker", index)
        with tf.Graph().as_default() as graph, tf.container(container), tf.device(host):
            with tf.device(ps_device(0)):
                self.global_step = tf.train.get_or_create_global_step()
            copies = LocalCopies(BUCKETS, dict.fromkeys(NAMES, (2,)), host)
            for name in NAMES:
                with tf.device(ps_device(SERVERS[name])):
                    copies.adopt([tf.get_variable(name, [2], initializer=tf.zeros_initializer(), use_resource=False)])
            self.variables = [copies.variables[name] for name in NAMES]
            mirrors = mirrors_of(copies)
            pairs = [
                (0.3 * (index + 1) * (mirrors[name].read_value() - place - index) / workers, copies.variables[name])
                for place, name in enumerate(NAMES)
            ]
            optimizer = (make or (lambda: tf.train.GradientDescentOptimizer(0.1)))()
            exchange = Exchange(copies, Wire(wire))
            parts = StepParts(optimizer, pairs, self.global_step, tf.constant(0.0), workers, index, exchange)
            self.stepper = (OverlappedWorker if overlaps else SyncWorker)(parts)
            self.optimizer = self.stepper._optimizer
            self._on_servers = [variable.read_value() for variable in self.variables]
            self._initialise = tf.global_variables_initializer()
            self.session = tf.Session(target, graph=graph, config=tf.ConfigProto(device_filters=filters(index)))
            self.session.run([mirror.initializer for mirror in mirrors.values()])

    def give(self, number: int) -> None:
        """Gives the first pushes of its step, and is gone."""
        self.stepper._load(self.session)
        self.give_at_once(range(number))
        self.session.close()

    def give_at_once(self, places: Iterable[int]) -> None:
        """Gives these pushes without waiting for any that it gave before."""
        self.session.run([self.optimizer.give[place] for place in places], self.optimizer.at_once)

    def values(self) -> np.ndarray:
        return np.array(self.session.run(self._on_servers))

    def given(self) -> List[int]:
        """How many gradients each worker has given, as the servers count them."""
        counted, era = self.session.run([self.optimizer.contributions, self.optimizer.era])
        given: List[int] = (counted - era).tolist()
        return given


Make = Callable[..., Worker]


@pytest.fixture
def make(targets: List[str]) -> Iterator[Make]:
    """Makes workers of one cluster, by index."""
    container, made = uuid.uuid4().hex, []

    def worker(index: int, workers: int = 2, **options: Any) -> Worker:
        made.append(Worker(targets[index], container, index, workers, **options))
        return made[-1]

    yield worker
    for each in made:
        each.session.close()


@pytest.fixture
def workers(make: Make) -> List[Worker]:
    """Chief and worker 1, at step 0."""
    return opened(make, 2)


def opened(make: Make, number: int, **options: Any) -> List[Worker]:
    made = [make(index, number, **options) for index in range(number)]
    made[0].open()
    assert [worker.join() for worker in made[1:]] == [0] * (number - 1)
    return made


def stepped(workers: List[Worker], steps: int) -> np.ndarray:
    for _ in range(steps):
        assert len(set(together(*[worker.step for worker in workers]))) == 1
    return workers[0].values()


def expected(workers: int, steps: int) -> np.ndarray:
    """The variables of one process that steps along the mean of all gradients."""
    values = np.zeros([len(NAMES), 2], np.float32)
    places = np.arange(len(NAMES), dtype=np.float32)[:, None]
    for _ in range(steps):
        values -= 0.1 * sum(0.3 * (index + 1) * (values - places - index) for index in range(workers)) / workers
    return values


def test_a_step_applies_the_mean_of_the_workers_gradients(workers: List[Worker]) -> None:
    np.testing.assert_allclose(stepped(workers, 3), expected(2, 3), rtol=1e-6)
    assert workers[0].given() == [3, 3]


def test_three_workers_are_one_process_too(make: Make) -> None:
    np.testing.assert_allclose(stepped(opened(make, 3), 3), expected(3, 3), rtol=1e-6)


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda: tf.train.GradientDescentOptimizer(0.1),
        lambda: tf.train.MomentumOptimizer(0.1, 0.9),
        lambda: tf.train.AdamOptimizer(0.1),
    ],
)
def test_two_workers_compute_bit_for_bit_what_they_do_without_overlap(targets: List[str], optimizer: Any) -> None:
    found = []
    for overlaps in (True, False):
        container = uuid.uuid4().hex

        def make(index: int, workers: int, container: str = container, overlaps: bool = overlaps) -> Worker:
            return Worker(targets[index], container, index, workers, overlaps, optimizer)

        found.append(stepped(opened(make, 2), 5))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("overlaps", [True, False])
def test_in_16_bits_a_worker_gets_the_values_of_this_step_and_not_of_the_one_before(make: Make, overlaps: bool) -> None:
    found = stepped(opened(make, 2, overlaps=overlaps, wire="float16"), 8)
    np.testing.assert_allclose(found, expected(2, 8), rtol=3e-3)  # a step behind it would be off by 4 %


def test_a_worker_that_gave_some_loads_gives_only_the_others_when_it_comes_back(
    workers: List[Worker], make: Make
) -> None:
    chief, other = workers
    other.give(3)
    again = make(1)
    assert together(chief.step, again.join) == [1, 1]
    np.testing.assert_allclose(chief.values(), expected(2, 1), rtol=1e-6)  # each push has one gradient of each
    assert chief.given() == [1, 1]
    np.testing.assert_allclose(stepped([chief, again], 2), expected(2, 3), rtol=1e-6)


def test_a_worker_that_gave_everything_gives_nothing_again(workers: List[Worker], make: Make) -> None:
    chief, other = workers
    other.give(len(BUCKETS))
    again = make(1)
    assert together(chief.step, again.join) == [1, 1]
    np.testing.assert_allclose(stepped([chief, again], 2), expected(2, 3), rtol=1e-6)


def test_a_worker_that_gave_nothing_begins_the_step(workers: List[Worker], make: Make) -> None:
    chief, other = workers
    other.session.close()
    again = make(1)
    assert again.join() == 0
    np.testing.assert_allclose(stepped([chief, again], 2), expected(2, 2), rtol=1e-6)


@pytest.mark.parametrize(
    ("applied", "gave"),
    few(
        [(applied, gave) for applied in (0, 1, 4) for gave in (1, 4, len(BUCKETS)) if applied <= gave],
        [(0, 1), (1, 4), (4, len(BUCKETS))],
    ),
)
def test_a_chief_that_died_in_a_step_finishes_it_when_it_comes_back(
    workers: List[Worker], make: Make, gave: int, applied: int
) -> None:
    chief, other = workers
    other.give_at_once(range(len(BUCKETS)))
    chief.give_at_once(range(gave))
    chief.session.run(chief.optimizer.finish_now[:applied])
    chief.session.close()
    again, other_again = make(0), make(1)
    assert together(again.join, other_again.join) == [1, 1]
    assert again.given() == [1, 1]
    np.testing.assert_allclose(again.values(), expected(2, 1), rtol=1e-6)
    assert len(set(together(again.step, other_again.step))) == 1


def test_a_load_that_was_taken_and_not_told_counts_as_applied(workers: List[Worker], make: Make) -> None:
    chief, _other = workers
    for worker in workers:
        worker.give_at_once(range(len(BUCKETS)))
    chief.session.run(chief.optimizer.empty[0])  # as if it had died before the update
    chief.session.close()
    again, other_again = make(0), make(1)
    assert together(again.join, other_again.join) == [1, 1]
    right = expected(2, 1)
    np.testing.assert_array_equal(again.values()[0], [0, 0])
    np.testing.assert_allclose(again.values()[1:], right[1:], rtol=1e-6)
    assert together(again.step, other_again.step) == [2, 2]


def test_a_chief_that_died_before_it_counted_the_step_counts_it(workers: List[Worker], make: Make) -> None:
    chief, _other = workers
    for worker in workers:
        worker.give_at_once(range(len(BUCKETS)))
    chief.session.run(chief.optimizer.finish_now)
    chief.session.close()
    again, other_again = make(0), make(1)
    assert together(again.join, other_again.join) == [1, 1]
    np.testing.assert_allclose(again.values(), expected(2, 1), rtol=1e-6)


def test_tokens_left_over_are_noticed_and_the_values_fetched_when_the_step_is_over(workers: List[Worker]) -> None:
    chief, other = workers
    stepped(workers, 1)
    left_over(other, [other.stepper._stamp] * 6)  # the last step's once more

    def step_of_the_chief() -> int:
        # It has gone through its tokens, and fetched values, before any of this step was applied.
        eventually("the other's gradients", lambda: has_given_all(chief, other))
        return chief.step()

    assert together(step_of_the_chief, other.step) == [2, 2]
    np.testing.assert_allclose(stepped(workers, 2), expected(2, 4), rtol=1e-6)
    assert other.session.run(other.optimizer.servers[0].queues[0].size()) == 0


def left_over(worker: Worker, tokens: List[int]) -> None:
    """Leaves tokens in the worker's queue of the first server."""
    with worker.session.graph.as_default():
        put = worker.optimizer.servers[0].queues[0].enqueue_many([np.array(tokens, np.int64)])
    worker.session.run(put)


def has_given_all(chief: Worker, other: Worker) -> bool:
    server = chief.optimizer.servers[0]
    given = chief.session.run(server.given).reshape([len(server.pushes), -1])
    return bool((given[:, other.index] > other.stepper._stamp).all())


def test_who_is_let_go_fetches_what_the_others_have(workers: List[Worker], make: Make) -> None:
    chief, other = workers
    chief.give_at_once([0])
    chief.session.close()  # in the middle of its step
    again = make(0)
    assert together(again.join, other.step) == [1, 1]
    np.testing.assert_allclose(stepped([again, other], 2), expected(2, 3), rtol=1e-6)


def test_who_begins_the_step_after_the_chief_came_back_is_let_go_too(
    workers: List[Worker], make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    chief, other = workers
    chief.give_at_once([0])
    chief.session.close()
    other.session.close()
    again, other_again, waits = make(0), make(1), threading.Event()

    def wait(*args: Any, **kwargs: Any) -> None:
        waits.set()
        wait_for(*args, **kwargs)

    monkeypatch.setattr("cluster.steps.overlapped_sync.wait_for", wait)
    assert together(again.join, lambda: waits.wait(PATIENCE_S) and other_again.step_after_join()) == [1, 1]
    np.testing.assert_allclose(stepped([again, other_again], 2), expected(2, 3), rtol=1e-6)


def test_who_is_let_go_too_late_has_the_right_values_one_step_later(workers: List[Worker]) -> None:
    chief, _ = workers
    stepped(workers, 1)
    chief.session.run(chief.optimizer.release)  # by a chief that came back when the other had all its tokens
    chief.session.run(chief.optimizer.drain)
    np.testing.assert_allclose(stepped(workers, 3), expected(2, 4), rtol=1e-6)


def test_a_worker_has_one_queue_of_tokens_for_all_pushes_of_a_server(workers: List[Worker]) -> None:
    chief, other = workers
    assert [len(server.queues) for server in other.optimizer.servers] == [1, 1]
    assert [len(server.queues) for server in chief.optimizer.servers] == [2, 2]


def test_values_left_in_the_copies_are_noticed(workers: List[Worker]) -> None:
    other = workers[1]
    stepped(workers, 1)
    copies = other.optimizer.copies
    with other.session.graph.as_default():
        left = copies.put(dict.fromkeys(NAMES, np.full(2, 9, np.float32)), np.int64(other.stepper._stamp - 1))
    other.session.run(copies.drain)
    other.session.run(left)  # in place of its own, as by a session that was given up
    np.testing.assert_allclose(stepped(workers, 2), expected(2, 3), rtol=1e-6)
    assert other.session.run(copies.number) == 1


def test_opening_again_forgets_what_was_under_way(workers: List[Worker], make: Make) -> None:
    chief, other = workers
    stepped(workers, 2)
    other.give(3)
    chief.open()
    again = make(1)
    assert again.join() == 0
    np.testing.assert_allclose(stepped([chief, again], 2), expected(2, 2), rtol=1e-6)


def test_a_gradient_of_before_the_variables_were_restored_is_dropped(workers: List[Worker], make: Make) -> None:
    chief, other = workers
    stepped(workers, 2)
    chief.open()
    other.give(len(BUCKETS))  # it has not noticed, and its step is the higher one
    assert chief.session.run(chief.optimizer.accumulated).tolist() == [0] * len(BUCKETS)
    again = make(1)
    assert again.join() == 0
    np.testing.assert_allclose(stepped([chief, again], 2), expected(2, 2), rtol=1e-6)


def test_a_worker_in_the_middle_of_a_step_is_called_back_when_variables_are_restored(workers: List[Worker]) -> None:
    chief, other = workers
    stepped(workers, 1)

    def wait() -> str:
        with pytest.raises(tf.errors.AbortedError) as caught:
            other.step()
        return str(caught.value)

    def restore() -> None:
        given = other.optimizer.servers[0].given
        eventually("the other's first gradient", lambda: chief.session.run(given.name).max() > other.stepper._stamp)
        chief.open()

    assert "closed the cluster" in together(restore, wait)[1]
    assert other.join() == 0
    assert together(chief.step, other.step) == [1, 1]


def test_a_chief_alone_goes_on_with_a_step_that_it_had_begun(make: Make) -> None:
    chief = make(0, 1)
    chief.open()
    chief.give(3)
    again = make(0, 1)
    assert again.join() == 1
    assert again.step() == 2
    np.testing.assert_allclose(again.values(), expected(1, 2), rtol=1e-6)


def owing(workers: List[Worker]) -> List[bool]:
    return [worker.stepper.owes(worker.session) for worker in workers]


def test_who_gave_all_that_may_be_given_owes_nothing(workers: List[Worker], make: Make) -> None:
    chief, other = workers
    assert owing(workers) == [True, True]
    other.give_at_once([*range(WINDOW), len(BUCKETS) - 1])
    assert owing(workers) == [True, False]
    chief.give_at_once([0])
    assert owing(workers) == [True, False]  # the chief could apply
    chief.session.run(chief.optimizer.finish_now[0])
    assert owing(workers) == [True, True]  # and then it is the other's turn


def test_a_load_may_be_given_once_that_of_a_window_before_is_applied() -> None:
    class Loads:
        bucket = object()

    server: Any = type("lane", (), {"pushes": [Loads] * (WINDOW + 2)})
    other: Any = type("lane", (), {"pushes": [Loads]})
    applied = np.array([True] + [False] * (WINDOW + 2))
    expected_turns = [True] * WINDOW + [True, False] + [True]
    assert may_be_given(applied, [server, other]).tolist() == expected_turns
