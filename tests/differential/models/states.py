"""Variables that are not trained but change: averages, statistics, counters; and those that only one process has."""

from typing import Any

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.data import labelled, words
from tests.differential.losses import Args, adam, error_of, sgd, square, through
from tests.differential.values import made


def _state(name: str, shape: Any, value: float = 0.0, dtype: Any = tf.float32) -> Any:
    return tf.get_variable(name, shape, dtype, initializer=tf.constant_initializer(value), trainable=False)


def _update(op: Any) -> None:
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, op)


@author(sgd)
def averaged_variables(x: Any, y: Any, args: Args) -> Any:
    """ExponentialMovingAverage.apply of the variables, in UPDATE_OPS."""
    loss = error_of(through(x, square(args)), y)
    _update(tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables()))
    return loss


@author(adam)
def averaged_under_dependencies(x: Any, y: Any, args: Args) -> Any:
    """ExponentialMovingAverage.apply as a control dependency of the loss."""
    loss = error_of(through(x, square(args)), y)
    with tf.control_dependencies([tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables())]):
        return tf.identity(loss)


@author(sgd)
def average_with_step(x: Any, y: Any, args: Args) -> Any:
    """ExponentialMovingAverage with num_updates, the global step."""
    loss = error_of(through(x, square(args)), y)
    _update(tf.train.ExponentialMovingAverage(0.9, tf.train.get_global_step()).apply(tf.trainable_variables()))
    return loss


@author(sgd)
def mean_teacher(x: Any, y: Any, args: Args) -> Any:
    """An average that the loss reads: a mean teacher."""
    w = square(args)
    teacher = tf.get_variable("teacher", initializer=w.initialized_value(), trainable=False)
    hidden, taught = through(x, w), through(x, teacher)
    with tf.control_dependencies([taught]):
        _update(tf.assign(teacher, 0.5 * teacher + 0.5 * w))
    return error_of(hidden, y) + tf.reduce_mean(tf.square(hidden - taught - 0.1), 1)


@author(sgd, same=True)
def averaged_loss(x: Any, y: Any, args: Args) -> Any:
    """ExponentialMovingAverage of a tensor, the loss."""
    loss = error_of(through(x, square(args)), y)
    mean = tf.reduce_mean(loss, name="mean_loss")
    _update(tf.train.ExponentialMovingAverage(0.5, zero_debias=True).apply([mean]))
    return loss


@author(sgd, same=True)
def batch_normalisation(x: Any, y: Any, args: Args) -> Any:
    """Statistics of the batch, with moving averages in UPDATE_OPS."""
    width = int(args["width"])
    product = tf.matmul(x, square(args))
    mean, variance = tf.nn.moments(product, [0])
    for name, value, start in (("mean", mean, 0.0), ("variance", variance, 1.0)):
        moving = _state(f"moving_{name}", [width], start)
        _update(tf.assign_sub(moving, 0.3 * (moving - value)))
    scale = tf.get_variable("scale", [width], initializer=tf.ones_initializer())
    return error_of(tf.tanh(tf.nn.batch_normalization(product, mean, variance, None, scale, 0.1)), y)


@author(sgd, same=True)
def batch_statistics(x: Any, y: Any, args: Args) -> Any:
    """Statistics of the batch without any state."""
    mean, variance = tf.nn.moments(tf.matmul(x, square(args)), [0], keepdims=True)
    return error_of(tf.tanh((tf.matmul(x, square(args, "other")) - mean) / tf.sqrt(variance + 0.1)), y)


@author(sgd, same=True)
def renormalised_by_averages(x: Any, y: Any, args: Args) -> Any:
    """Moving averages that the loss reads before they move."""
    product = tf.matmul(x, square(args))
    moving = _state("moving", [int(args["width"])])
    read = 1.5 * moving
    with tf.control_dependencies([read]):
        _update(tf.assign(moving, 0.5 * moving + 0.5 * tf.reduce_mean(product, 0)))
    return error_of(tf.tanh(product - read), y)


@author(sgd)
def counter(x: Any, y: Any, args: Args) -> Any:
    """An integer that UPDATE_OPS count up."""
    _update(tf.assign_add(_state("steps_seen", [], 0, tf.int64), 1))
    return error_of(through(x, square(args)), y)


@author(sgd)
def counter_that_is_read(x: Any, y: Any, args: Args) -> Any:
    """A number that UPDATE_OPS move and that the loss reads."""
    weight = _state("weight", [], 1.0)
    read = weight + 0.5
    with tf.control_dependencies([read]):
        _update(tf.assign(weight, weight * 0.5))
    return error_of(through(x, square(args)), y) * read


@author(sgd)
def memory_by_slices(x: Any, y: Any, args: Args) -> Any:
    """A memory of which UPDATE_OPS assign a slice, and whose mean the loss reads before."""
    memory = tf.get_variable("memory", [2, int(args["width"])], initializer=tf.zeros_initializer(), trainable=False)
    w = square(args)
    hidden, remembered = through(x, w), tf.reduce_mean(memory, 0) + 0.0
    with tf.control_dependencies([remembered]):
        moved = memory[0].assign(0.5 * remembered + 0.1 * tf.reduce_mean(tf.stop_gradient(w), 0))
    _update(moved.op if hasattr(moved, "op") else moved)
    return error_of(hidden, y) + tf.reduce_mean(tf.square(hidden - remembered), 1)


@author(sgd)
def moved_in_a_branch(x: Any, y: Any, args: Args) -> Any:
    """A number that one branch of a tf.cond in UPDATE_OPS assigns, in some steps, and that the loss reads before."""
    weight = _state("weight", [], 1.0)
    read = weight + 0.5
    with tf.control_dependencies([read]):
        _update(tf.cond(read > 1.1, lambda: tf.assign(weight, 0.5 * read), lambda: read).op)
    return error_of(through(x, square(args)), y) * read


@author(sgd)
def moved_in_a_loop(x: Any, y: Any, args: Args) -> Any:
    """A number that the body of a tf.while_loop in UPDATE_OPS assigns, and that the loss reads before."""
    weight = _state("weight", [], 1.0)
    read = weight + 0.5

    def body(index: Any, value: Any) -> Any:
        return index + 1, tf.assign(weight, 0.75 * value)

    with tf.control_dependencies([read]):
        _update(tf.while_loop(lambda index, _: index < 3, body, [0, tf.identity(read)])[1].op)
    return error_of(through(x, square(args)), y) * read


@author(sgd)
def spectral_norm(x: Any, y: Any, args: Args) -> Any:
    """Spectral normalisation: a vector that one step of power iteration moves."""
    w = square(args)
    u = made("u", [1, int(args["width"])], trainable=False)
    left = tf.nn.l2_normalize(tf.matmul(u, w, transpose_b=True))
    right = tf.nn.l2_normalize(tf.matmul(left, w))
    left, right = tf.stop_gradient(left), tf.stop_gradient(right)
    with tf.control_dependencies([left, right]):
        _update(tf.assign(u, right))
    sigma = tf.reduce_sum(tf.matmul(left, w) * right)
    return error_of(through(x, w / sigma), y)


@author(sgd, labelled, same=True)
def centres(x: Any, label: Any, args: Args) -> Any:
    """Centres of classes, moved by scatter_sub in UPDATE_OPS, as in centre loss."""
    hidden = through(x, square(args))
    table = made("centres", [4, int(args["width"])], trainable=False)
    near = tf.gather(table, label)
    with tf.control_dependencies([near]):
        _update(tf.scatter_sub(table, label, 0.1 * (near - hidden)))
    return tf.reduce_mean(tf.square(hidden - near), 1)


@author(sgd)
def local_variable(x: Any, y: Any, args: Args) -> Any:
    """A local variable, which no checkpoint holds."""
    scale = tf.get_local_variable("scale", [], initializer=tf.constant_initializer(0.5))
    return error_of(through(x, square(args)), y) * scale


@author(sgd)
def streaming_metric(x: Any, y: Any, args: Args) -> Any:
    """tf.metrics.mean, which has local variables, as a metric of the model."""
    loss = error_of(through(x, square(args)), y)
    value, update = tf.metrics.mean(loss)
    _update(update)
    return loss, {"mean": value * tf.ones_like(loss)}


@author(sgd, words)
def lookup_table(word: Any, y: Any, args: Args) -> Any:
    """A lookup table, from words to rows."""
    values = tf.lookup.KeyValueTensorInitializer(["red", "green", "blue"], [0, 1, 2], tf.string, tf.int64)
    table = tf.lookup.StaticHashTable(values, 3)
    x = tf.one_hot(table.lookup(word), int(args["width"]))
    return error_of(through(x, square(args)), y)


@author(sgd, alone=True)
def dropout_of_one(x: Any, y: Any, args: Args) -> Any:
    """tf.nn.dropout with a seed of its own: one worker with one tower draws what one process does."""
    return error_of(tf.nn.dropout(through(x, square(args)), rate=0.4, seed=11), y)


@author(sgd)
def dropout_by_the_step(x: Any, y: Any, args: Args) -> Any:
    """A mask that is drawn from the number of the step, alike for all examples."""
    seed = tf.stack([tf.cast(tf.train.get_global_step(), tf.int32), 5])
    kept = tf.cast(tf.random.stateless_uniform([int(args["width"])], seed) < 0.6, tf.float32) / 0.6
    return error_of(through(x, square(args)) * kept, y)
