"""What gradients are taken of: a variable that is cut is one tensor to the towers, and its gradient is split."""

from typing import Any, List, Tuple

import numpy as np

from cluster.copies import Copies
from cluster.engine import tf
from cluster.measuring import measure
from cluster.placement import assign
from cluster.variables import SharedVariables

HOST = "/device:CPU:0"
ROWS, WIDTH = 3000, 128


def loss() -> Any:
    w = tf.get_variable("w", [ROWS, WIDTH], initializer=tf.zeros_initializer())
    b = tf.get_variable("b", [WIDTH], initializer=tf.zeros_initializer())
    return tf.reduce_sum((tf.reduce_sum(w * tf.range(ROWS, dtype=tf.float32)[:, None], 0) + b)[None], 1)


def shared() -> Tuple[SharedVariables, Copies]:
    """In the current graph, on two servers."""
    variables = SharedVariables(measure(loss), 2, HOST)
    return variables, variables.copies(assign(variables.sizes, 2))


def in_towers(variables: SharedVariables, copies: Copies, build: Any = loss) -> List[Any]:
    losses = []
    with variables.scope(copies):
        for index in range(2):
            with tf.variable_scope(tf.get_variable_scope(), reuse=index > 0):
                losses.append(build())
    return losses


def test_towers_read_a_variable_that_is_cut_as_one_tensor_and_its_gradient_is_that_of_the_slices() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variables, copies = shared()
        losses = in_towers(variables, copies)
        sources = variables.sources(copies)
        assert [source.name for source in sources] == ["w", "b"]
        grads = tf.gradients(tf.add_n(losses), [source.value for source in sources])
        pairs = [pair for grad, source in zip(grads, sources) for pair in source.split(grad)]
        parts = [variable.op.name for _, variable in pairs]
        assert parts == [variable.op.name for variable in tf.trainable_variables()] and len(parts) > 2
        assert all(grad.shape == variable.shape for grad, variable in pairs)
        session.run(tf.variables_initializer(tf.trainable_variables()))
        found = session.run(
            [grad for grad, _ in pairs], {value: np.zeros(value.shape) for value in copies.values.values()}
        )
    np.testing.assert_array_equal(np.concatenate(found[:-1])[:, 0], 2 * np.arange(ROWS))


def test_a_tower_may_ask_for_it_first_inside_a_loop() -> None:
    with tf.Graph().as_default():
        variables, copies = shared()

        def inside(count: Any, total: Any) -> Any:
            return count + 1, total + tf.reduce_sum(loss())

        in_towers(variables, copies, lambda: tf.while_loop(lambda count, _: count < 2, inside, (0, 0.0))[1])
        whole = variables.sources(copies)[0]
        assert tf.gradients(tf.reduce_sum(whole.value), [whole.value])[0].shape == (ROWS, WIDTH)
        assert not whole.value.op._get_control_flow_context()
