"""Loops and branches around variables."""

from typing import Any

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.losses import Args, adam, error_of, sgd, square, through
from tests.differential.values import made, starting


@author(sgd)
def while_loop(x: Any, y: Any, args: Args) -> Any:
    """A variable that is made before a loop and used in it."""
    w = square(args)
    _, hidden = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, through(h, w)), [0, x])
    return error_of(hidden, y)


@author(sgd)
def made_in_a_loop(x: Any, y: Any, args: Args) -> Any:
    """A variable that is made in the body of a loop, by a cell with an initializer of its own."""
    width = int(args["width"])

    def body(i: Any, hidden: Any) -> Any:
        w = tf.get_variable("w", [width, width], initializer=starting("w", [width, width]))
        return i + 1, through(hidden, w)

    with tf.variable_scope("cell", reuse=tf.AUTO_REUSE):
        _, hidden = tf.while_loop(lambda i, _: i < 2, body, [0, x])
    hidden.set_shape([None, width])
    return error_of(hidden, y)


@author(sgd)
def branches(x: Any, y: Any, args: Args) -> Any:
    """tf.cond, whose two branches use one matrix differently."""
    w = square(args)
    positive = tf.reduce_sum(w) > 100.0
    return error_of(tf.cond(positive, lambda: through(x, w), lambda: through(-x, 2 * w)), y)


@author(sgd)
def decay_in_a_branch(x: Any, y: Any, args: Args) -> Any:
    """A decay by tf.trainable_variables() within tf.cond."""
    loss = error_of(through(x, square(args)), y)
    decay = tf.cond(
        tf.train.get_global_step() < 3,
        lambda: 0.3 * tf.add_n([tf.nn.l2_loss(variable) for variable in tf.trainable_variables()]),
        lambda: tf.constant(0.0),
    )
    return loss + decay


@author(adam)
def recurrent(x: Any, y: Any, args: Args) -> Any:
    """A recurrent network by tf.while_loop and TensorArrays."""
    w, u = square(args), 0.3 * square(args, "u")
    inputs = tf.TensorArray(tf.float32, 3).unstack(tf.stack([x, x[:, ::-1], -x]))

    def body(i: Any, state: Any) -> Any:
        return i + 1, tf.tanh(tf.matmul(inputs.read(i), w) + tf.matmul(state, u))

    _, state = tf.while_loop(lambda i, _: i < 3, body, [0, tf.zeros_like(x)])
    return error_of(state, y)


@author(sgd, runtimes=("tf1",))
def dynamic_rnn(x: Any, y: Any, args: Args) -> Any:
    """tf.nn.dynamic_rnn with a cell that makes its variables in the loop, which Keras 3 no longer has."""
    width = int(args["width"])
    kernel = starting("kernel", [2 * width, width])
    cell = tf.nn.rnn_cell.BasicRNNCell(width)
    with tf.variable_scope("rnn", initializer=kernel):
        _, state = tf.nn.dynamic_rnn(cell, tf.stack([x, -x], 1), dtype=tf.float32)
    return error_of(state, y)


@author(sgd)
def mapped(x: Any, y: Any, args: Args) -> Any:
    """tf.map_fn over the examples."""
    w = square(args)
    return error_of(tf.map_fn(lambda row: through(row[None], w)[0], x), y)


@author(sgd)
def scanned(x: Any, y: Any, args: Args) -> Any:
    """tf.scan over the rows of a variable."""
    w = square(args)
    sums = tf.scan(lambda total, row: 0.9 * total + row, w)
    return error_of(through(x, sums / float(args["width"]) ** 0.5), y)


@author(sgd)
def lookup_in_a_loop(x: Any, y: Any, args: Args) -> Any:
    """A table whose rows are gathered one by one in a loop."""
    width = int(args["width"])
    table = made("table", [width, width])

    def body(i: Any, hidden: Any) -> Any:
        return i + 1, tf.tanh(hidden + tf.gather(table, i))

    _, hidden = tf.while_loop(lambda i, _: i < 4, body, [0, x])
    return error_of(hidden, y)


@author(adam)
def resource_in_a_loop(x: Any, y: Any, args: Args) -> Any:
    """use_resource=True, read in each iteration of a loop, and outside of it."""
    w = square(args, use_resource=True)
    _, hidden = tf.while_loop(lambda i, _: i < 3, lambda i, h: (i + 1, tf.tanh(through(h, w))), [0, x])
    return error_of(through(hidden, w), y)
