"""A step that gives its variables their values itself uses no older ones, whatever TensorFlow makes of the graph."""

from typing import Any, Callable

import pytest

from cluster.model.mirrors import make_wait
from cluster.runtime.tf_compat import tf
from cluster.variables.uses import ancestors

USES = {
    "read": lambda variable: tf.identity(variable),
    "cast": lambda variable: tf.cast(variable, tf.float16),
    "cast of a part": lambda variable: tf.cast(tf.reshape(variable, [2, 2])[0], tf.float16),
    "bits": lambda variable: tf.bitcast(variable, tf.int32),
    "cast in a loop": lambda variable: tf.while_loop(
        lambda at, sums: at < 3,
        lambda at, sums: (at + 1, sums + tf.cast(variable, tf.float16)),
        [0, tf.zeros([4], tf.float16)],
    )[1],
    "cast twice": lambda variable: tf.cast(tf.cast(tf.identity(variable), tf.int32), tf.float32),
}


@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_whatever_a_step_does_with_a_variable_waits_for_its_value(use: Callable[[Any], Any]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.get_variable("v", [4], use_resource=False)
        found = use(variable) * 1  # TensorFlow does not change what is fetched
        expected = use(tf.constant([7.0, 8.0, 9.0, 10.0])) * 1
        numbers = tf.random.shuffle(tf.constant([[7.0, 8.0, 9.0, 10.0]]))[0]  # nothing that is known beforehand
        fresh = tf.assign(variable, numbers)
        make_wait([variable], ancestors([found]), fresh.op)
        got, wanted = session.run([found, expected])  # without a value before
    assert got.tolist() == wanted.tolist()
