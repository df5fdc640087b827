"""What travels in 16 bits is rounded on its way, and nothing of it is lost where it comes from."""

from typing import Any

import numpy as np
import tensorflow.compat.v1 as tf

from tests.differential.travelling import InFull, Rounded, short

FIRST, RATE = np.array([1.001, -0.05, 3.0, 1e-30], np.float32), 0.25


def trained(travelling: InFull) -> Any:
    """The variables after two steps of gradient descent on half of their squares."""
    with tf.Graph().as_default():
        variable = tf.get_variable("w", initializer=FIRST, use_resource=True)
        grad = travelling.gradient(tf.gradients(tf.nn.l2_loss(variable), variable)[0])
        with tf.control_dependencies([grad]):
            arrived = travelling.arrived()
        with tf.control_dependencies(arrived):
            step = tf.assign_sub(variable, RATE * grad)
        with tf.Session() as session:
            session.run(variable.initializer)
            for _ in range(2):
                travelling.run(session, step)
            return session.run(variable)


def test_short_is_what_tensorflow_casts_to_bfloat16() -> None:
    values = np.random.RandomState(0).standard_normal(10_000).astype(np.float32)
    with tf.Session(graph=tf.Graph()) as session:
        with session.graph.as_default():
            cast = tf.cast(tf.cast(tf.constant(values), tf.bfloat16), tf.float32)
        assert np.array_equal(session.run(cast), short(values))


def test_in_full_nothing_is_rounded() -> None:
    assert np.allclose(trained(InFull()), FIRST * np.float32(1 - RATE) ** 2, rtol=1e-6)


def test_rounded_values_make_rounded_gradients_which_move_values_with_all_of_their_bits() -> None:
    expected = FIRST
    for _ in range(2):
        expected = expected - np.float32(RATE) * short(short(expected))
    assert np.array_equal(trained(Rounded()), expected)
    assert not np.array_equal(expected, short(expected))
