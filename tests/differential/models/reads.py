"""Ways to read, share and name a variable."""

from typing import Any, Tuple

import tensorflow.compat.v1 as tf

from tests.differential.authors import author
from tests.differential.data import double
from tests.differential.losses import Args, adam, error_of, momentum, sgd, square, through
from tests.differential.values import first, made, starting


@author(sgd)
def used_twice(x: Any, y: Any, args: Args) -> Any:
    """One matrix in two layers."""
    w = square(args)
    return error_of(through(through(x, w), w), y)


@author(sgd)
def read_value(x: Any, y: Any, args: Args) -> Any:
    """variable.read_value()."""
    return error_of(through(x, square(args).read_value()), y)


@author(sgd)
def dot_value(x: Any, y: Any, args: Args) -> Any:
    """variable.value(), and the variable itself, too."""
    w = square(args)
    return error_of(through(through(x, w.value()), w), y)


@author(sgd)
def identity_of_it(x: Any, y: Any, args: Args) -> Any:
    """tf.identity of a variable of tf.trainable_variables()."""
    square(args)
    return error_of(through(x, tf.identity(tf.trainable_variables()[0])), y)


@author(sgd)
def reused_scope(x: Any, y: Any, args: Args) -> Any:
    """variable_scope(reuse=True): both halves of a siamese network."""
    with tf.variable_scope("half"):
        left = through(x, square(args))
    with tf.variable_scope("half", reuse=True):
        right = through(-0.5 * x, square(args))
    return error_of(left - right, y)


@author(momentum)
def auto_reuse(x: Any, y: Any, args: Args) -> Any:
    """variable_scope(reuse=tf.AUTO_REUSE)."""
    for _ in range(2):
        with tf.variable_scope("layer", reuse=tf.AUTO_REUSE):
            x = through(x, square(args))
    return error_of(x, y)


@author(sgd)
def template(x: Any, y: Any, args: Args) -> Any:
    """tf.make_template."""
    layer = tf.make_template("layer", lambda value: through(value, square(args)))
    return error_of(layer(layer(x)), y)


@author(sgd)
def stopped(x: Any, y: Any, args: Args) -> Any:
    """tf.stop_gradient of one of two uses."""
    w = square(args)
    return error_of(through(through(x, tf.stop_gradient(w)), w), y)


@author(sgd)
def found_by_name(x: Any, y: Any, args: Args) -> Any:
    """A variable that is found by its name in the graph's list."""
    square(args)
    w = next(variable for variable in tf.trainable_variables() if variable.name == "w:0")
    return error_of(through(x, w), y)


@author(adam)
def resource(x: Any, y: Any, args: Args) -> Any:
    """use_resource=True."""
    return error_of(through(x, square(args, use_resource=True)), y)


@author(sgd)
def resource_decayed(x: Any, y: Any, args: Args) -> Any:
    """use_resource=True, read again by tf.trainable_variables()."""
    loss = error_of(through(x, square(args, use_resource=True)), y)
    return loss + 0.2 * tf.add_n([tf.nn.l2_loss(variable) for variable in tf.trainable_variables()])


@author(sgd)
def tf_variable(x: Any, y: Any, args: Args) -> Any:
    """tf.Variable."""
    width = int(args["width"])
    return error_of(through(x, tf.Variable(first("w", [width, width]), name="w")), y)


@author(sgd)
def partitioner(x: Any, y: Any, args: Args) -> Any:
    """get_variable(partitioner=): the author cuts it."""
    width = int(args["width"])

    def part(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        begin = partition_info.var_offset[0] if partition_info else 0
        return tf.constant(first("w", [width, width])[begin : begin + int(shape[0])])

    w = tf.get_variable("w", [width, width], initializer=part, partitioner=tf.fixed_size_partitioner(2))
    return error_of(through(x, w), y)


@author(sgd, double)
def float64(x: Any, y: Any, args: Args) -> Any:
    """Variables of float64."""
    width = int(args["width"])
    w = tf.get_variable("w", [width, width], tf.float64, initializer=starting("w", [width, width]))
    v = tf.get_variable("v", [width], tf.float64, initializer=starting("v", [width]))
    return tf.square(tf.reduce_sum(through(x, w) * v, 1) / width**0.5 - y)


@author(sgd)
def unused(x: Any, y: Any, args: Args) -> Any:
    """A trainable variable without a gradient."""
    square(args, "unused")
    return error_of(through(x, square(args)), y)


@author(sgd)
def part_of_it(x: Any, y: Any, args: Args) -> Any:
    """Rows and columns of a variable, by an index."""
    w = square(args)
    half = int(args["width"]) // 2
    return error_of(through(x[:, :half], w[:half]) + through(x[:, half:], w[half:, ::-1]), y)


@author(sgd)
def custom_getter(x: Any, y: Any, args: Args) -> Any:
    """A custom getter of the author's: weights by direction and length."""

    def normalised(getter: Any, name: str, *rest: Any, **asked: Any) -> Any:
        direction = getter(name, *rest, **asked)
        if direction.shape.ndims < 2:
            return direction
        length = getter(f"{name}_length", [int(direction.shape[1])], initializer=tf.ones_initializer())
        return tf.nn.l2_normalize(direction, 0) * length

    with tf.variable_scope("normalised", custom_getter=normalised):
        return error_of(through(x, square(args)), y)


@author(sgd)
def caching_device(x: Any, y: Any, args: Args) -> Any:
    """get_variable(caching_device=)."""
    return error_of(through(x, square(args, caching_device="/cpu:0")), y)


@author(sgd)
def straight_through(x: Any, y: Any, args: Args) -> Any:
    """Weights of one bit each, with a gradient that goes past the sign."""
    w = square(args)
    binary = w + tf.stop_gradient(tf.sign(w) * tf.reduce_mean(tf.abs(w)) - w)
    return error_of(through(x, binary), y)


@author(sgd)
def custom_gradient(x: Any, y: Any, args: Args) -> Any:
    """tf.custom_gradient of a layer's input and weights."""

    @tf.custom_gradient
    def layer(value: Any, weights: Any) -> Tuple[Any, Any]:
        product = tf.matmul(value, weights)

        def grad(upstream: Any) -> Tuple[Any, Any]:
            clipped = tf.clip_by_value(upstream, -0.05, 0.05)
            return tf.matmul(clipped, weights, transpose_b=True), tf.matmul(value, clipped, transpose_a=True)

        return product, grad

    return error_of(tf.tanh(layer(x, tf.convert_to_tensor(square(args)))), y)


@author(sgd)
def two_dense_shapes(x: Any, y: Any, args: Args) -> Any:
    """A matrix and a kernel of four axes, for a convolution."""
    width = int(args["width"])
    kernel = made("kernel", [1, 3, width, 8], 0.2)
    image = tf.reshape(x, [-1, 1, 1, width])
    convolved = tf.nn.conv2d(image, kernel, [1, 1, 1, 1], "SAME")
    return error_of(tf.nn.relu(convolved[:, 0, 0, :]) + 0.1, y)


@author(sgd)
def same_shape_swapped(x: Any, y: Any, args: Args) -> Any:
    """Two matrices of which the one that is made last is used first."""
    later, sooner = square(args, "later"), square(args, "sooner")
    return error_of(through(through(x, sooner), later), y)


@author(sgd)
def as_graph_element(x: Any, y: Any, args: Args) -> Any:
    """A tensor that is got from the graph by the name of the variable's read."""
    w = square(args, use_resource=False)
    read = tf.get_default_graph().get_tensor_by_name(f"{w.op.name}:0")
    return error_of(through(x, tf.convert_to_tensor(read)), y)


@author(sgd)
def control_dependency(x: Any, y: Any, args: Args) -> Any:
    """A value that is read under a control dependency."""
    w = square(args)
    with tf.control_dependencies([tf.assert_less(tf.reduce_max(tf.abs(w)), 100.0)]):
        return error_of(through(x, tf.identity(w)), y)
