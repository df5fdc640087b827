"""Filling and emptying many queues with one operation."""

from typing import Any, List, Tuple

import pytest

from cluster.runtime.server_state import ManyQueues
from cluster.runtime.tf_compat import tf


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
