"""The model of a construction: two layers, ``a`` and ``ab``, an error, and what the construction adds to them."""

from typing import Any, List

import tensorflow.compat.v1 as tf

from tests.differential.authors import Args, Author
from tests.differential.constructions.axes import Construction, from_json
from tests.differential.constructions.functions import computed
from tests.differential.constructions.nets import Net, Nets, scope_of
from tests.differential.constructions.updates import Update
from tests.differential.constructions.wrappers import rate_of_the_model, wrapped
from tests.differential.data import dense
from tests.differential.losses import error_of
from tests.differential.values import first, made

_IS_1 = tf.version.VERSION.startswith("1.")
_SHARE = 0.2  # of a term


def composed(text: str, about: str = "a construction") -> Author:
    """The job that a construction makes."""
    how, nets = from_json(text), Nets()

    def model(x: Any, y: Any, args: Args) -> Any:
        return _loss(how, nets.of_this_graph(), x, y)

    def optimizer(args: Args) -> Any:
        return wrapped(how)

    return Author(text, model, dense, optimizer, about, same=how.same, settings=how.settings)


def _loss(how: Construction, net: Net, x: Any, y: Any) -> Any:
    terms = _Terms(how, net)
    if how.wrapper == "decayed":
        rate = rate_of_the_model()
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, rate.assign(rate * 0.7))
    with tf.variable_scope("a"):
        hidden = tf.tanh(tf.matmul(x, terms.weights()))
    update = Update(how, net)
    hidden = update.before(hidden)
    if how.update == "batch_norm":
        hidden = _normalised(net, hidden)
    hidden = terms.second_layer(hidden)
    error = error_of(hidden, y) * (8.0 if how.wrapper == "skipping" else 1.0)
    if how.dtype == "mixed":
        wide = tf.get_variable("wide", [6], tf.float64, initializer=tf.constant_initializer(0.1, tf.float64))
        error += tf.cast(tf.reduce_sum(tf.cast(hidden, tf.float64) * wide, 1), tf.float32)
    terms.add_by_hand()
    return update.registered(error + terms.in_the_loss())


def _normalised(net: Net, hidden: Any) -> Any:
    layer = net.layer("norm", lambda: tf.layers.BatchNormalization(momentum=0.9, epsilon=0.1, name="norm"))
    return layer(hidden, training=True)


class _Waves(tf.keras.initializers.Initializer):  # type: ignore[misc]
    """First values by a formula, for a layer that makes its own variables."""

    def __call__(self, shape: Any, dtype: Any = None, **_: Any) -> Any:
        return tf.constant(first("ab/w", [int(size) for size in shape], 0.7))


class _Terms:
    """The terms of one model call."""

    def __init__(self, how: Construction, net: Net):
        self._how, self._net = how, net
        self._of_layer: List[Any] = []

    def weights(self) -> Any:
        """The first layer's, with a regularizer where the construction has one."""
        regularizer = self._decay if self._how.term == "regularizer" else None
        self._w = made("w", [6, 6], regularizer=regularizer, use_resource=self._how.resource)
        return self._w

    def _decay(self, value: Any) -> Any:
        def squares(value: Any) -> Any:
            return _SHARE / 2 * tf.reduce_sum(value * value)

        inside = "plain" if self._how.update != "none" else self._how.inside
        return computed(inside, squares, tf.convert_to_tensor(value))

    def second_layer(self, hidden: Any) -> Any:
        """The output of a layer that may have terms of its own."""
        if self._how.term not in ("activity", "layer_losses"):
            with tf.variable_scope("ab"):
                return tf.tanh(tf.matmul(hidden, made("w", [6, 6], use_resource=self._how.resource)))
        once = self._how.scope == "layer"
        layer = self._net.layer("ab", self._layer) if once else self._layer()
        output = layer(hidden)
        self._of_layer = list(layer.losses)
        return output

    def _layer(self) -> Any:
        asked = {"name": "ab", "kernel_initializer": _Waves(), "activation": tf.tanh}
        asked["activity_regularizer"] = lambda output: 0.1 * tf.reduce_sum(tf.square(output))
        if self._how.term == "layer_losses":
            asked["kernel_regularizer"] = lambda value: 0.1 * tf.reduce_sum(tf.square(value))
        in_collection = self._how.term == "activity" and _IS_1
        return (tf.layers if in_collection else tf.keras.layers).Dense(6, **asked)

    def add_by_hand(self) -> None:
        """Puts a term into the collection of the construction."""
        if self._how.term != "by_hand":
            return
        with scope_of(self._how.scope, self._net):
            term = self._decay(self._w)
        if self._how.collection == "losses":
            tf.losses.add_loss(term)
        elif self._how.collection == "object":
            self._net.terms.append(term)
        else:
            own = self._how.collection == "own"
            tf.add_to_collection("terms_of_the_author" if own else tf.GraphKeys.REGULARIZATION_LOSSES, term)

    def in_the_loss(self) -> Any:
        """What the model itself adds to the error of each example."""
        how = self._how
        if how.wrapper == "regularized" or how.term == "none":
            return 0.0
        if how.term == "loss":
            return self._decay(self._w)
        if self._of_layer and not (how.term == "activity" and _IS_1):
            return tf.add_n(self._of_layer)
        return tf.add_n(self._collected())

    def _collected(self) -> List[Any]:
        if self._how.collection == "object":
            return self._net.terms
        if self._how.collection == "losses":
            return list(tf.losses.get_losses())
        own = self._how.collection == "own"
        return list(tf.get_collection("terms_of_the_author" if own else tf.GraphKeys.REGULARIZATION_LOSSES))
