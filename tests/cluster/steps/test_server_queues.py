"""Tokens of one server come in the order of its pushes, whichever push was given or applied first.

A step's parts are held up by queues of the test's own.
"""

from types import SimpleNamespace
from typing import Any, Dict, List

import pytest

from cluster.runtime.server_state import ManyQueues
from cluster.runtime.tf_compat import tf
from cluster.steps.server_notes import CLOSED
from cluster.steps.server_queues import ChiefServerQueues
from tests.cluster.steps.test_sync_worker import together

HERE = "/job:localhost/task:0/device:CPU:0"
STAMP = 41


class Gate:
    """Holds up what waits for ``passed`` until it is opened."""

    def __init__(self, name: str) -> None:
        self._queue = tf.FIFOQueue(-1, tf.int64, [()], shared_name=f"gate_{name}")
        self.passed, self.open = self._queue.dequeue(), self._queue.enqueue(0)


class Step:
    """The chief's record of three pushes and a worker beside it; the last push brings no values back."""

    def __init__(self) -> None:
        pushes: Any = [SimpleNamespace(bucket=bucket) for bucket in ("a", "b", None)]
        with tf.Graph().as_default() as graph:
            stamp = tf.constant(STAMP, tf.int64)
            self.server = ChiefServerQueues(HERE, pushes, 2, [0, 1], stamp, ManyQueues(2))
            self.given = [Gate(f"given_{place}") for place in range(2)]
            self.ready = [Gate(f"ready_{place}") for place in range(2)]
            self.tokens = [self.server.wait(gate.passed, is_timed=False) for place, gate in enumerate(self.given)]
            for gate in self.ready:
                self.server.send_token(gate.passed)
            self.number = [queue.size() for queue in self.server.queues]
            self.put = self.server.queues[0].enqueue_many([tf.constant([5, 6], tf.int64)])
            self.release, self.drain = self.server.release(), self.server.drain()
            self.drain_all, self.oldest = self.server.drain_all(), self.server.oldest_token()
            self.session = tf.Session(graph=graph)

    def run(self, *fetches: Any) -> List[Any]:
        return [self.session.run(each) for each in fetches]


@pytest.fixture
def step() -> Step:
    return Step()


def test_a_load_given_first_does_not_take_the_token_of_one_before_it(step: Step) -> None:
    def give() -> None:
        step.run(step.given[1].open, step.put)
        step.run(step.given[0].open)

    assert together(lambda: step.session.run(step.tokens), give)[0] == [5, 6]


def test_a_load_applied_first_is_told_after_those_before_it(step: Step) -> None:
    found: Dict[str, Any] = {}

    def apply() -> None:
        step.run(step.ready[1].open)
        found["early"] = step.run(step.number)[0]
        step.run(step.ready[0].open)

    together(lambda: step.session.run(step.server.last_sent), apply)
    assert found["early"] == [0, 0]
    assert step.run(step.number)[0] == [2, 2]
    step.run(*(gate.open for gate in step.given))
    assert step.run(step.tokens)[0] == [STAMP + 1] * 2


def test_who_is_let_go_has_a_token_for_each_load_that_brings_values(step: Step) -> None:
    step.run(step.release)
    assert step.run(step.number)[0] == [2, 2]
    step.run(*(gate.open for gate in step.given))
    assert step.run(step.oldest)[0] == CLOSED


def test_a_worker_drops_its_own_tokens_and_a_chief_all(step: Step) -> None:
    step.run(step.release, step.drain)
    assert step.run(step.number)[0] == [0, 2]
    step.run(step.drain_all)
    assert step.run(step.number)[0] == [0, 0]


def test_what_was_applied_before_is_noted_by_place(step: Step) -> None:
    with step.session.graph.as_default():
        note_applied_at = step.server.note_applied_at(tf.constant([0, 2]))
        begun = tf.group(step.server.applied.initializer, step.server.given.initializer)
    step.run(begun, note_applied_at)
    assert step.run(step.server.applied)[0].tolist() == [STAMP + 1, CLOSED, STAMP + 1]
