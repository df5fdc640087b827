"""Windows of local steps beside DOWNPOUR computed by hand, and that no step is lost in silence or counted twice.

Two servers and two workers inside this process. The reference is numpy: each worker's own copy, step by step.
"""

import threading
import uuid
from typing import Any, Callable, Dict, Iterator, List, Mapping

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.steps import base_worker, local_steps
from cluster.steps.base_worker import HoldGate, StepParts
from cluster.steps.local_steps import LocalParts, LocalStepsWorker
from tests.cluster.steps import test_async_worker as nobody_waits
from tests.cluster.steps.test_async_worker import LARGE, NAMES, PLACES, SMALL
from tests.cluster.steps.test_sync_worker import servers_of
from tests.support.waiting import eventually, let_pass

N = 4
CONSTANT, FALLING = (lambda step: 0.1), (lambda step: 0.1 / (1.0 + step))
Rate = Callable[[Any], Any]


class Worker(nobody_waits.Worker):
    """Its loss draws each variable to a point of its own; it takes windows of N steps."""

    stepper: LocalStepsWorker

    def rate(self, step: Any) -> Any:
        return 0.1

    def stepper_of(self, parts: StepParts, gate: HoldGate, mirrors: Dict[str, Any]) -> LocalStepsWorker:
        own = self.own_step = tf.get_variable("own_step", [], tf.int64, tf.zeros_initializer(), collections=[])

        def load(values: Mapping[str, Any], step: Any) -> Any:
            return tf.group(*[tf.assign(mirrors[name], value) for name, value in values.items()], tf.assign(own, step))

        return LocalStepsWorker(parts, gate, LocalParts(N, self.rate(tf.cast(own.read_value(), tf.float32)), load))

    def counted(self) -> int:
        return int(self.session.run(self.global_step))


class ByHand:
    """The servers of DOWNPOUR, in float64, and the workers' copies of one variable for each name."""

    def __init__(self, workers: int, rate: Rate = CONSTANT):
        self.values, self.step, self._rate = np.zeros([len(NAMES), 1]), 0, rate
        self._own = [self.values.copy() for _ in range(workers)]
        self._accrued = [np.zeros_like(self.values) for _ in range(workers)]
        self._at = [0] * workers
        self._since = [0] * workers

    def local(self, worker: int, steps: int = 1, clip_norm: float = np.inf, size: int = 1) -> None:
        for _ in range(steps):
            grad = 2 * (self._own[worker] - PLACES)
            norm = np.sqrt(size * np.square(grad).sum())
            change = self._rate(self._at[worker]) * grad * min(1.0, clip_norm / norm)
            self._own[worker] = self._own[worker] - change
            self._accrued[worker] = self._accrued[worker] + change
            self._at[worker] += 1
            self._since[worker] += 1

    def end(self, worker: int) -> None:
        self.values = self.values - self._accrued[worker]
        self.step += self._since[worker]
        self._own[worker], self._accrued[worker] = self.values.copy(), np.zeros_like(self.values)
        self._at[worker], self._since[worker] = self.step, 0


def alike(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected * np.ones_like(found), rtol=2e-6)


@pytest.fixture(scope="module")
def targets() -> List[str]:
    """The targets of the workers."""
    return servers_of([("ps", 2), ("worker", 2)])


Make = Callable[..., Worker]


@pytest.fixture
def make(targets: List[str]) -> Iterator[Make]:
    """Makes workers of one cluster, by index."""
    container, made = uuid.uuid4().hex, []

    def worker(index: int, values: int = LARGE, wire: str = "float32", clip_norm: Any = None) -> Worker:
        optimizer = nobody_waits.OPTIMIZERS[0]
        made.append(Worker(targets[index], container, index, optimizer, clip_norm, wire, values))
        return made[-1]

    yield worker
    for each in made:
        each.session.close()


@pytest.mark.parametrize("values", [LARGE, SMALL])
@pytest.mark.parametrize("rate", [CONSTANT, FALLING])
def test_after_each_window_one_worker_has_trained_what_plain_gradient_descent_does(
    make: Make, monkeypatch: pytest.MonkeyPatch, values: int, rate: Rate
) -> None:
    monkeypatch.setattr(Worker, "rate", lambda self, step: rate(step))
    chief, plain = make(0, values), ByHand(1, rate)
    assert chief.stepper.overlaps is (values == LARGE)
    for window in range(1, 4):
        plain.local(0, N)
        plain.end(0)
        alike(chief.step(N), plain.values)
        assert chief.counted() == N * window


def test_until_the_end_of_a_window_the_servers_get_and_count_nothing(make: Make) -> None:
    chief = make(0)
    assert [chief.stepper.step(chief.session)[0] for _ in range(N)] == [0, 0, 0, N]
    before = chief.values()
    np.testing.assert_array_equal(chief.step(N - 1), before)
    assert chief.counted() == N


@pytest.mark.parametrize("values", [LARGE, SMALL])
def test_two_workers_train_as_downpour_by_hand_whoever_ends_a_window_first(make: Make, values: int) -> None:
    workers, by_hand = [make(0, values), make(1, values)], ByHand(2)
    for worker, steps in [(0, 2), (1, N), (0, N - 2), (1, 1), (0, N), (0, N), (1, N - 1), (1, N)]:
        workers[worker].step(steps)
        by_hand.local(worker, steps)
        if by_hand._since[worker] == N:
            by_hand.end(worker)
        alike(workers[worker].values(), by_hand.values)
        assert workers[worker].counted() == by_hand.step
    assert by_hand.step == 6 * N


def test_the_gradient_of_each_local_step_is_clipped(make: Make) -> None:
    chief, by_hand = make(0, clip_norm=500.0), ByHand(1)
    by_hand.local(0, N, 500.0, LARGE)
    by_hand.end(0)
    alike(chief.step(N), by_hand.values)
    unclipped = ByHand(1)
    unclipped.local(0, N)
    unclipped.end(0)
    assert abs(unclipped.values - by_hand.values).max() > 0.1  # else the test would pass without clipping


@pytest.mark.parametrize("wire", ["bfloat16", "float16"])
def test_in_16_bits_windows_come_as_near_as_single_steps(make: Make, wire: str) -> None:
    chief, by_hand = make(0, wire=wire), ByHand(1)
    for _ in range(3):
        by_hand.local(0, N)
        by_hand.end(0)
    np.testing.assert_allclose(chief.step(3 * N), by_hand.values * np.ones([1, LARGE]), rtol=1e-2)


def test_the_last_window_ends_with_training(make: Make) -> None:
    chief, plain = make(0), ByHand(1)
    chief.stepper.join(chief.session, N + 2)
    assert [chief.stepper.step(chief.session)[0] for _ in range(N + 2)] == [0, 0, 0, N, N, N + 2]
    plain.local(0, N + 2)
    plain.end(0)
    alike(chief.values(), plain.values)


def test_a_window_that_is_finished_early_counts_the_steps_that_it_has(make: Make) -> None:
    chief, plain = make(0), ByHand(1)
    chief.step(3)
    assert chief.stepper.finish(chief.session, 0) == 3 == chief.stepper.finish(chief.session, 3)
    plain.local(0, 3)
    plain.end(0)
    alike(chief.values(), plain.values)
    chief.never_stale()
    assert [chief.stepper.step(chief.session)[0] for _ in range(N)] == [3, 3, 3, 3 + N]


def test_a_window_that_was_begun_before_a_worker_joins_again_is_lost_and_was_not_counted(make: Make) -> None:
    chief, other, by_hand = make(0), make(1), ByHand(1)
    other.step(N)
    chief.step(N - 1)
    assert chief.stepper.join(chief.session, 100) == N
    chief.never_stale()
    for _ in range(2):
        by_hand.local(0, N)
        by_hand.end(0)
    alike(chief.step(N), by_hand.values)
    assert chief.counted() == 2 * N


def test_an_evaluation_in_a_window_uses_the_servers_values_and_changes_nothing(make: Make) -> None:
    chief, other, by_hand = make(0), make(1), ByHand(2)
    chief.step(2)
    other.step(N)
    chief.stepper.renew(chief.session)
    for worker, steps in [(0, 2), (1, N)]:
        by_hand.local(worker, steps)
    by_hand.end(1)
    with chief.session.graph.as_default():
        mirror = chief.session.graph.get_tensor_by_name("mirrors/e:0")
    alike(chief.session.run(mirror), by_hand.values[NAMES.index("e")])
    by_hand.local(0, 2)
    by_hand.end(0)
    alike(chief.step(2), by_hand.values)


@pytest.mark.parametrize("values", [LARGE, SMALL])
def test_after_a_long_pause_a_window_begins_with_new_values(make: Make, values: int) -> None:
    chief, other, by_hand = make(0, values), make(1, values), ByHand(1)
    chief.step(N)
    other.stepper._took_s = 0.0  # any pause is long beside that
    for _ in range(2):
        by_hand.local(0, N)
        by_hand.end(0)
    alike(other.step(N), by_hand.values)


def test_what_a_session_that_was_given_up_lays_down_late_begins_no_window(make: Make) -> None:
    chief, plain = make(0), ByHand(1)
    with chief.session.graph.as_default():
        old = np.full(LARGE, 9, np.float32)
        late = chief.copies.put(dict.fromkeys(NAMES, old), np.int64(chief.stepper._life - 1))
    chief.session.run(late)
    plain.local(0, 2 * N)
    alike(chief.step(2 * N), _ended(plain))
    assert chief.session.run(chief.copies.number) == 0


def _ended(by_hand: ByHand) -> np.ndarray:
    by_hand.end(0)
    return by_hand.values


def test_held_the_chief_ends_its_window_and_the_others_come_to_the_end_of_theirs(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_steps, "LOOK_S", 1000.0)
    chief, other = make(0), make(1)
    chief.step(3)
    other.step()
    running = threading.Thread(target=other.step, args=[20 * N - 1])
    running.start()
    with chief.stepper.held(chief.session, 0) as step:
        values = chief.values()
        let_pass(0.3)  # in which the other would end windows
        assert running.is_alive() and not other.stepper.owes(other.session)
        assert chief.counted() == step and (step - 3) % N == 0
        np.testing.assert_array_equal(chief.values(), values)
    running.join()
    assert chief.counted() == 3 + 20 * N


def test_within_a_long_window_a_worker_sees_that_the_chief_holds_all_and_gives_what_it_has(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_steps, "LOOK_S", 0.0)
    monkeypatch.setattr(base_worker, "STILL_S", 60.0)
    chief, other, plain = make(0), make(1), ByHand(1)
    other.stepper._window = 1000
    other.step(2)
    closed = chief.stepper.held(chief.session, 0)
    holding = threading.Thread(target=closed.__enter__)
    holding.start()
    assert eventually("the gate is closed", lambda: other.session.run(other.stepper._look)[1] != base_worker.OPEN)
    waiting = threading.Thread(target=other.step, args=[2])  # the first ends the window, the second waits
    waiting.start()
    holding.join()
    plain.local(0, 3)
    alike(chief.values(), _ended(plain))
    assert chief.counted() == 3 and not other.stepper.owes(other.session)
    closed.__exit__(None, None, None)
    waiting.join()


def test_within_a_long_window_a_worker_sees_that_the_others_have_ended_training(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    chief, other = make(0), make(1)
    for each in (chief, other):
        each.stepper.join(each.session, N)
    other.stepper._window = other.stepper._last = 1000
    monkeypatch.setattr(local_steps, "LOOK_S", 0.0)
    assert [other.stepper.step(other.session)[0] for _ in range(2)] == [0, 0]
    chief.step(2)
    assert other.stepper.step(other.session)[0] == 0 and other.stepper.own_step(0) == 3
    chief.step(2)
    assert other.stepper.step(other.session)[0] == N  # what is counted, not what it has taken
    other.stepper._last = N
    assert other.stepper.step(other.session)[0] == N + 5 == chief.counted()


def test_an_exchange_may_take_longer_than_the_steps_before_it_but_not_for_ever(make: Make) -> None:
    chief, now = make(0), 1000.0
    assert chief.stepper.owes(chief.session)  # a local step that lasts is its own
    chief.stepper._longest_s = 10.0
    for passed_s, owes in [(1.0, False), (49.0, False), (51.0, True)]:
        with pytest.MonkeyPatch().context() as patch, chief.stepper._measured():
            patch.setattr(chief.stepper, "_exchanges_since", now)
            patch.setattr("cluster.steps.local_steps.time.monotonic", lambda at=now + passed_s: at)
            assert chief.stepper.owes(chief.session) is owes


def test_the_servers_know_a_sessions_exchange_before_its_first_window(make: Make) -> None:
    """Else one that starts again in that window would take a sum that was computed before."""
    chief, fetched = make(0), []

    class Noting:
        def run(self, fetches: Any, feed_dict: Any = None) -> Any:
            fetched.append(fetches)
            return chief.session.run(fetches, feed_dict)

    before = chief.step(N)
    assert chief.stepper.join(Noting(), 100) == N
    assert any(isinstance(each, list) and chief.stepper._counted in each for each in fetched)
    np.testing.assert_array_equal(chief.values(), before)


def test_the_servers_take_one_sum_after_the_other(make: Make) -> None:
    operations = make(0).session.graph.get_operations()
    locks = [each.get_attr("use_locking") for each in operations if each.type == "ApplyGradientDescent"]
    assert len(locks) == len(NAMES) and all(locks)
