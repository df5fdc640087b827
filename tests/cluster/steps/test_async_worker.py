"""Steps for which nobody waits: what a worker computes with, and that nothing is used twice or left over.

Two servers and two workers inside this process.
"""

import math
import threading
import uuid
from typing import Any, Callable, Dict, Iterator, List

import numpy as np
import pytest

from cluster.model.mirrors import make_wait
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.tf_compat import tf
from cluster.steps import base_worker
from cluster.steps.async_worker import AsyncWorker
from cluster.steps.base_worker import HoldGate, StepParts
from cluster.steps.exchange import Exchange
from cluster.task import Task
from cluster.variables.layout import Bucket
from cluster.variables.local_copies import LocalCopies
from cluster.variables.uses import ancestors
from cluster.variables.wire_format import Wire
from tests.cluster.steps.test_overlapped_sync import mirrors_of
from tests.cluster.steps.test_sync_worker import filters, servers_of
from tests.support.waiting import let_pass

BUCKETS = [Bucket(0, place, (name,)) for place, name in enumerate("abcde")] + [Bucket(1, 0, ("f", "g"))]
NAMES = [name for bucket in BUCKETS for name in bucket.names]
LARGE, SMALL = 1 << 15, 2  # values of each: so that pushes and pulls overlap, and so that they do not
PLACES = np.arange(len(NAMES), dtype=np.float32)[:, None]


class AsAWhole(tf.train.GradientDescentOptimizer):  # type: ignore[misc]
    """One that has to see all gradients, as far as anybody can know."""

    def apply_gradients(self, grads_and_vars: Any, global_step: Any = None, name: Any = None) -> Any:
        return super().apply_gradients(grads_and_vars, global_step, name)


OPTIMIZERS = [
    lambda: tf.train.GradientDescentOptimizer(0.1),
    lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    lambda: tf.train.AdamOptimizer(0.1),
    lambda: AsAWhole(0.1),
]


@pytest.fixture(scope="module")
def targets() -> List[str]:
    """The targets of the workers."""
    return servers_of([("ps", 2), ("worker", 2)])


class Worker:
    """Its loss draws each variable to a point of its own. It has joined; the chief has made the values before."""

    def __init__(self, target: str, container: str, index: int, make: Any, clip_norm: Any, wire: str, values: int):
        host = worker_device("worker", index)
        with tf.Graph().as_default() as graph, tf.container(container), tf.device(host):
            with tf.device(ps_device(0)):
                self.global_step = tf.train.get_or_create_global_step()
            copies = LocalCopies(BUCKETS, dict.fromkeys(NAMES, (values,)), host)
            for bucket in BUCKETS:
                with tf.device(ps_device(bucket.server)):
                    copies.adopt([variable(name, values) for name in bucket.names])
            variables = [copies.variables[name] for name in NAMES]
            mirrors = mirrors_of(copies)
            pairs = [
                (2.0 * (mirrors[name].read_value() - place), copies.variables[name])
                for name, place in zip(NAMES, PLACES[:, 0])
            ]
            exchange = Exchange(copies, Wire(wire))
            gate = HoldGate(Task("worker", index, {"ps": ["a:1"] * 2, "worker": ["b:1"] * 2}))
            parts = StepParts(make(), pairs, self.global_step, tf.constant(0.0), 2, index, exchange, clip_norm)
            self.stepper = self.stepper_of(parts, gate, mirrors)
            if self.stepper.fetches_within and not self.stepper.overlaps:
                step = ancestors([grad for grad, _ in pairs])
                with tf.control_dependencies(None):
                    fresh = tf.group(*[tf.assign(mirrors[name], value) for name, value in exchange.fetch().items()])
                make_wait(mirrors.values(), step, fresh)
            self.copies = copies
            self._on_servers = [each.read_value() for each in variables]
            initialise = tf.global_variables_initializer()
            self.session = tf.Session(target, graph=graph, config=tf.ConfigProto(device_filters=filters(index)))
            self.session.run([mirror.initializer for mirror in mirrors.values()])
        if index == 0:
            self.stepper.close(self.session)
            self.session.run(initialise)
            self.stepper.open(self.session, 100)
        else:
            self.stepper.join(self.session, 100)
        self.never_stale()

    def stepper_of(self, parts: StepParts, gate: HoldGate, mirrors: Dict[str, Any]) -> AsyncWorker:
        return AsyncWorker(parts, gate)

    def never_stale(self) -> None:
        """However long a pause was, nothing is fetched for it: what a test counts on, on a machine that is busy."""
        self.stepper._took_s = math.inf

    def step(self, times: int = 1) -> np.ndarray:
        for _ in range(times):
            self.stepper.step(self.session)
            self.never_stale()
        return self.values()

    def values(self) -> np.ndarray:
        return np.array(self.session.run(self._on_servers))


def variable(name: str, values: int) -> Any:
    return tf.get_variable(name, [values], initializer=tf.zeros_initializer(), use_resource=False)


Make = Callable[..., Worker]


@pytest.fixture
def make(targets: List[str]) -> Iterator[Make]:
    """Makes workers of one cluster, by index."""
    container, made = uuid.uuid4().hex, []

    def worker(
        index: int,
        optimizer: Any = OPTIMIZERS[0],
        clip_norm: Any = None,
        wire: str = "float32",
        values: int = LARGE,
    ) -> Worker:
        made.append(Worker(targets[index], container, index, optimizer, clip_norm, wire, values))
        return made[-1]

    yield worker
    for each in made:
        each.session.close()


def alone(optimizer: Any, steps: int, values: int = LARGE) -> np.ndarray:
    """The variables of one process with one session."""
    with tf.Graph().as_default(), tf.Session() as session:
        variables = [variable(name, values) for name in NAMES]
        pairs = [(2.0 * (each.read_value() - place), each) for each, place in zip(variables, PLACES[:, 0])]
        step = optimizer().apply_gradients(pairs)
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(step)
        return np.array(session.run(variables))


def near(values: np.ndarray, part: float) -> None:
    """All values are that far on their way."""
    np.testing.assert_allclose(values, part * PLACES * np.ones_like(values), rtol=1e-5)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("values", [LARGE, SMALL])
def test_one_worker_computes_bit_for_bit_what_one_process_does(make: Make, optimizer: Any, values: int) -> None:
    np.testing.assert_array_equal(make(0, optimizer, values=values).step(5), alone(optimizer, 5, values))


def test_pushes_and_pulls_overlap_where_that_pays_and_the_optimizer_lets_them(make: Make) -> None:
    assert [make(0, optimizer).stepper.overlaps for optimizer in OPTIMIZERS] == [True, True, True, False]


def test_they_do_not_in_a_small_model(make: Make) -> None:
    assert not make(0, values=SMALL).stepper.overlaps


def test_gradients_are_clipped_by_the_norm_of_all(make: Make) -> None:
    norm = float(np.sqrt(LARGE * np.square(2 * PLACES).sum()))
    near(make(0, clip_norm=norm / 2).step(), 0.1)


def test_in_16_bits_a_step_computes_with_what_the_one_before_has_made(make: Make) -> None:
    np.testing.assert_allclose(make(0, wire="bfloat16").step(5), alone(OPTIMIZERS[0], 5), rtol=1e-2)


def test_a_worker_sees_what_the_other_did_when_its_own_step_comes_back(make: Make) -> None:
    chief, other = make(0), make(1)
    chief.step()  # 0.2 of the way, for both
    near(other.step(), 0.4)  # it had its values from before
    near(other.step(), 0.4 + 0.2 * 0.6)


def test_of_a_small_model_a_worker_sees_what_the_other_did_when_its_own_step_begins(make: Make) -> None:
    chief, other = make(0, values=SMALL), make(1, values=SMALL)
    chief.step()
    near(other.step(), 0.2 + 0.2 * 0.8)
    assert other.session.run(other.copies.number) == 0


def test_after_a_long_pause_a_step_fetches_anew(make: Make) -> None:
    chief, other = make(0), make(1)
    chief.step()
    other.stepper._took_s = 0.0  # any pause is long beside that
    near(other.step(), 0.2 + 0.2 * 0.8)
    assert other.session.run(other.copies.number) == 1


def test_what_a_session_that_was_given_up_lays_down_late_is_noticed(make: Make) -> None:
    chief = make(0)
    chief.step()
    with chief.session.graph.as_default():
        late = chief.copies.put(dict.fromkeys(NAMES, np.full(LARGE, 9, np.float32)), np.int64(chief.stepper._life - 1))
    chief.session.run(chief.copies.drain)
    chief.session.run(late)
    np.testing.assert_allclose(chief.step(2), alone(OPTIMIZERS[0], 3), rtol=1e-6)
    assert chief.session.run(chief.copies.number) == 1


# -- held by the chief


def test_held_workers_end_the_step_that_they_are_in_and_go_on_when_they_may(make: Make) -> None:
    chief, other = make(0), make(1)
    other.step()
    running = threading.Thread(target=other.step, args=[20])
    running.start()
    with chief.stepper.held(chief.session, 0) as step:
        values = chief.values()
        let_pass(0.3)  # in which the other would take steps
        assert chief.session.run(chief.global_step) == step < 21
        np.testing.assert_array_equal(chief.values(), values)
        assert other.stepper.owes(other.session) is not running.is_alive()
    running.join()
    assert chief.session.run(chief.global_step) == 21


def test_who_joins_while_all_are_held_waits_too(make: Make) -> None:
    chief = make(0)
    with chief.stepper.held(chief.session, 0) as step:
        running = threading.Thread(target=make(1).step)
        running.start()
        running.join(0.3)
        assert running.is_alive() and chief.session.run(chief.global_step) == step
    running.join()
    assert chief.session.run(chief.global_step) == step + 1


def test_a_worker_that_hangs_is_waited_for_only_so_long_and_named(
    make: Make, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    chief, _ = make(0), make(1)
    monkeypatch.setattr(base_worker, "STILL_S", 0.1)
    with chief.stepper.held(chief.session, 0) as step:
        assert step == 0
    assert "workers with index 1 still take a step" in capsys.readouterr().out


def test_the_chief_that_follows_one_that_died_lets_the_others_go_on(make: Make) -> None:
    chief, other = make(0), make(1)
    held = chief.stepper.held(chief.session, 0)
    running = threading.Thread(target=other.step, args=[2])
    running.start()
    held.__enter__()
    chief.stepper.join(chief.session, 100)
    running.join()
    assert chief.session.run(chief.global_step) == 2
