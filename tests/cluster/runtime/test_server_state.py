"""Locks, copies of values, and filling and emptying many queues with one operation."""

import threading
from typing import Any, List, Tuple

import pytest

from cluster.runtime.server_state import ManyQueues, copied, kept, locked
from cluster.runtime.tf_compat import tf

PATIENCE_S = 20


def test_a_copied_value_stays_when_its_variable_changes() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        counted = kept("counted", [2], tf.int64, 1)
        value = copied(counted)
        with tf.control_dependencies([value]):
            changed = tf.scatter_update(counted, 0, 5)
        with tf.control_dependencies([changed]):
            later = value + 0
        session.run(counted.initializer)
        assert session.run([later, changed])[0].tolist() == [1, 1]


def test_a_step_that_waits_for_what_it_needs_keeps_no_other_from_the_lock() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        counted = kept("counted", [], tf.int64, 0)
        mutex = tf.raw_ops.MutexV2(shared_name="mutex")
        queue = tf.FIFOQueue(-1, tf.int64, [()])
        late = queue.dequeue()
        slow, _ = locked(mutex, [late], lambda: [tf.assign_add(counted, late).op])
        quick, _ = locked(mutex, [], lambda: [tf.assign_add(counted, 1).op])
        session.run(counted.initializer)
        waiting = threading.Thread(target=session.run, args=(slow,), daemon=True)
        waiting.start()
        for _ in range(100):  # whenever the other begins
            session.run(quick, options=tf.RunOptions(timeout_in_ms=1000 * PATIENCE_S))
        session.run(queue.enqueue(10))
        waiting.join(PATIENCE_S)
        assert session.run(counted) == 110


def made(number: int) -> Tuple[List[Any], Any, ManyQueues]:
    queues = [tf.FIFOQueue(-1, tf.int64, [()], shared_name=f"queue_{index}") for index in range(number)]
    return queues, tf.stack([queue.queue_ref for queue in queues]), ManyQueues(number)


@pytest.mark.parametrize("number", [1, 3])
def test_all_get_the_same_tokens_in_their_order_and_lose_them(number: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queues, handles, many = made(number)
        put, empty = many.put(handles, tf.constant([5, 7], tf.int64)), many.empty(handles)
        sizes = [queue.size() for queue in queues]
        session.run(put)
        session.run(put)
        assert session.run(queues[-1].dequeue()) == 5
        assert session.run(sizes) == [4] * (number - 1) + [3]
        session.run(empty)
        session.run(empty)  # waits for nothing
        assert session.run(sizes) == [0] * number


def test_the_operation_is_done_when_all_have_their_tokens() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        queues, handles, many = made(20)
        with tf.control_dependencies([many.put(handles, tf.constant([5], tf.int64))]):
            sizes = [queue.size() for queue in queues]
        assert session.run(sizes) == [1] * 20


def test_one_more_call_is_one_more_operation_however_many_queues_there_are() -> None:
    with tf.Graph().as_default() as graph:
        _, handles, many = made(9)
        tokens = tf.constant([5], tf.int64)
        before = len(graph.get_operations())
        many.put(handles, tokens)
        assert len(graph.get_operations()) == before + 1
