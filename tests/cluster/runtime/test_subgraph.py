"""A copy of a part of a graph gives for other inputs what the part would give for them; what needs state is named."""

from typing import Any, Callable, Dict, List

import numpy as np
import pytest

from cluster.runtime.subgraph import copied, needs_state
from cluster.runtime.tf_compat import tf

UNARY: List[Callable[[Any], Any]] = [
    lambda x: x + 3,
    lambda x: tf.reshape(tf.stack([x, x], 0), [-1, 2]),
    lambda x: tf.concat([x, x * 2], 0),
    lambda x: tf.strings.to_hash_bucket_fast(tf.strings.as_string(x), 1000),
    lambda x: tf.unique(tf.reshape(x, [-1]))[0],
    lambda x: tf.split(x, 2, axis=0)[1] if x.shape.ndims and x.shape[0] is not None and x.shape[0] == 4 else x,
    lambda x: tf.RaggedTensor.from_row_lengths(tf.reshape(x, [-1]), tf.expand_dims(tf.size(x), 0)).flat_values,
]


def drawn(seed: int, inputs: List[Any]) -> List[Any]:
    """Some tensors, each made by drawn operations of those before."""
    random = np.random.RandomState(seed)
    known = list(inputs)
    for _ in range(8):
        known.append(tf.cast(UNARY[random.randint(len(UNARY))](known[random.randint(len(known))]), tf.int64))
    both = tf.reduce_sum(known[-1]) * tf.reduce_sum(known[random.randint(len(known))])
    return [known[-1], both, inputs[0], tf.constant(7, tf.int64)]


@pytest.mark.parametrize("seed", range(20))
def test_a_copy_computes_the_same_of_other_inputs(seed: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = [tf.identity(tf.constant([[1, 2], [3, 4], [5, 6], [7, 8]], tf.int64)),
                  tf.identity(tf.constant([9, 10, 11, 12], tf.int64))]  # fmt: skip
        others = [tf.constant([[4, 4], [0, 1], [2, 2], [5, 9]], tf.int64), tf.constant([8, 1, 1, 0], tf.int64)]
        made = drawn(seed, inputs)
        assert needs_state(made, inputs) == []
        copies = copied(made, {old.name: new for old, new in zip(inputs, others)})
        found, fed = session.run(copies), session.run(made, dict(zip(inputs, session.run(others))))
        assert session.run(made[1]) != found[1]
    for one, other in zip(found, fed):
        np.testing.assert_array_equal(one, other)


def test_a_vocabulary_is_shared_and_an_order_alone_does_not_count() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        words, others = tf.identity(tf.constant(["a", "b"])), tf.constant(["b", "c"])
        entries = tf.lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64))
        vocabulary, state = tf.lookup.StaticHashTable(entries, 0), tf.get_variable("state", [])
        with tf.control_dependencies([state.read_value()]):  # which has no value
            ids = vocabulary.lookup(words)
        assert needs_state([ids], [words]) == []
        (copy,) = copied([ids], {words.name: others})
        session.run(tf.tables_initializer())
        assert session.run(copy).tolist() == [2, 0]


def _looped(batch: Any) -> Any:
    return tf.while_loop(lambda value: value < 10, lambda value: value + 1, [batch])


STATES: Dict[str, Callable[[Any], Any]] = {
    "variable": lambda batch: batch + tf.get_variable("variable", [], tf.int64, tf.zeros_initializer()),
    "random": lambda batch: batch + tf.random.uniform([], 0, 9, tf.int64, name="random"),
    "python": lambda batch: tf.py_func(lambda value: value, [batch], tf.int64, name="python"),
    "while": _looped,
}


@pytest.mark.parametrize("name", STATES)
def test_what_may_change_between_two_times_is_found(name: str) -> None:
    with tf.Graph().as_default():
        batch = tf.identity(tf.constant(1, tf.int64))
        found = needs_state([STATES[name](batch) * 2], [batch])
        assert any(op.name.startswith(name) for op in found)
        before = needs_state([tf.identity(tf.random.uniform([]), name="x")], [batch])
        assert [op.type for op in before] == ["RandomUniform"]
