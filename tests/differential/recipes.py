"""Models put together at random: layers, sharing, regularizers, constraints and an optimizer.

A recipe is a value, drawn by hypothesis from a seed; as JSON it is the model's name, so that any process can make it.
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, Callable, Dict, Tuple

import tensorflow.compat.v1 as tf

from tests.differential.authors import Author
from tests.differential.data import wide_and_deep
from tests.differential.losses import EPSILON, Args, error_of
from tests.differential.models import optimizers as own
from tests.differential.values import made

KINDS = ("dense", "residual", "loop", "scaled", "rows", "whole_table", "normalised", "branch")
REGULARIZERS = ("none", "argument", "l1")
DECAYS = ("none", "trainable", "named")
CONSTRAINTS = ("none", "norm", "positive", "columns")
READS = ("itself", "value", "read_value", "identity", "collection")
AVERAGES = ("none", "updates", "dependency")


@dataclass(frozen=True)
class Layer:
    """One layer; two with the same ``shared`` number have one variable, unless that is 0."""

    kind: str
    shared: int = 0
    regularizer: str = "none"
    constraint: str = "none"
    read: str = "itself"
    resource: bool = False
    bias: bool = False


@dataclass(frozen=True)
class Recipe:
    """A whole model and its optimizer."""

    layers: Tuple[Layer, ...]
    optimizer: str
    decay: str = "none"
    average: str = "none"
    annealed: bool = False

    def as_json(self) -> str:
        """The recipe as a name."""
        return json.dumps(asdict(self), sort_keys=True)


def from_json(text: str) -> Recipe:
    """The recipe of that name."""
    values = json.loads(text)
    return Recipe(**{**values, "layers": tuple(Layer(**layer) for layer in values["layers"])})


def composed(text: str, about: str = "a recipe") -> Author:
    """The model that a recipe makes."""
    recipe = from_json(text)

    def model(x: Any, ids: Any, y: Any, args: Args) -> Any:
        return _loss(recipe, x, ids, y, args)

    return Author(text, model, wide_and_deep, OPTIMIZERS[recipe.optimizer], about)


def _loss(recipe: Recipe, x: Any, ids: Any, y: Any, args: Args) -> Any:
    hidden, shared = x, {}  # type: Any, Dict[int, Any]
    for index, layer in enumerate(recipe.layers):
        with tf.variable_scope(f"layer{index}"):
            hidden = _applied(layer, _variable(layer, args, shared), hidden, ids, args)
    loss = error_of(hidden, y) + _decay(recipe) + tf.losses.get_regularization_loss()
    if recipe.annealed:
        loss += 0.1 * tf.cast(tf.train.get_global_step(), tf.float32) * tf.reduce_mean(tf.square(hidden), 1)
    return _averaged(recipe, loss)


def _variable(layer: Layer, args: Args, shared: Dict[int, Any]) -> Any:
    """The layer's variable; one that is shared is made by the first layer that has it."""
    is_table = layer.kind in ("rows", "whole_table")
    key = layer.shared * 2 + is_table
    if layer.shared and key in shared:
        return shared[key]
    width = int(args["width"])
    shape = [int(args["rows"]), 8] if is_table else [width, width]
    constraint = None if layer.kind == "rows" else _constraint(layer.constraint)
    asked = {"regularizer": _regularizer(layer.regularizer), "use_resource": layer.resource, "constraint": constraint}
    shared[key] = made("w", shape, 3.0 if is_table else 1.0, **asked)
    return shared[key]


def _regularizer(name: str) -> Any:
    def squared(value: Any) -> Any:
        return 0.1 * tf.nn.l2_loss(value)

    def absolute(value: Any) -> Any:
        return 0.01 * tf.reduce_sum(tf.sqrt(tf.square(value) + 0.01))  # smooth, as rounding would choose the sign

    return {"argument": squared, "l1": absolute}.get(name)


def _constraint(name: str) -> Any:
    def short(value: Any) -> Any:
        return value * tf.minimum(tf.norm(value), 1.5) / tf.norm(value)

    def positive(value: Any) -> Any:
        return tf.maximum(value, -0.05)

    def columns(value: Any) -> Any:
        return tf.nn.l2_normalize(value, 0)

    return {"norm": short, "positive": positive, "columns": columns}.get(name)


def _read(layer: Layer, variable: Any) -> Any:
    if layer.read == "collection":
        return next(each for each in tf.trainable_variables() if each.op.name == variable.op.name)
    if layer.read == "identity":
        return tf.identity(variable)
    return variable if layer.read == "itself" else getattr(variable, layer.read)()


def _applied(layer: Layer, variable: Any, hidden: Any, ids: Any, args: Args) -> Any:
    if layer.kind in ("rows", "whole_table"):
        return _looked_up(layer, variable, hidden, ids, args)
    w = _read(layer, variable)
    product = _multiplied(layer, w, hidden)
    if layer.bias:
        product += made("bias", [int(args["width"])], 0.1)
    return tf.tanh(product)


def _looked_up(layer: Layer, variable: Any, hidden: Any, ids: Any, args: Args) -> Any:
    rows = tf.reduce_sum(tf.nn.embedding_lookup(variable, ids), 1)
    if layer.kind == "whole_table":
        rows += 0.01 * tf.reduce_sum(_read(layer, variable), 0)
    repeats = -(-int(args["width"]) // 8)
    return tf.tanh(hidden + tf.tile(rows, [1, repeats])[:, : int(args["width"])])


def _multiplied(layer: Layer, w: Any, hidden: Any) -> Any:
    if layer.kind == "loop":
        return tf.while_loop(lambda i, _: i < 2, lambda i, h: (i + 1, tf.tanh(tf.matmul(h, w))), [0, hidden])[1]
    if layer.kind == "branch":
        early = tf.train.get_global_step() < 2
        return tf.cond(early, lambda: tf.matmul(hidden, w), lambda: tf.matmul(hidden, -w))
    if layer.kind == "normalised":
        return tf.matmul(hidden, w / tf.norm(w))
    if layer.kind == "scaled":
        return tf.matmul(hidden, w) * (1 + tf.reduce_mean(tf.square(w)))
    return tf.matmul(hidden, w) + (hidden if layer.kind == "residual" else 0.0)


def _decay(recipe: Recipe) -> Any:
    ends = {"trainable": "", "named": "/w"}.get(recipe.decay)
    if ends is None:
        return 0.0
    found = [variable for variable in tf.trainable_variables() if variable.op.name.endswith(ends)]
    return 0.1 * tf.add_n([tf.nn.l2_loss(variable) for variable in found])


def _averaged(recipe: Recipe, loss: Any) -> Any:
    if recipe.average == "none":
        return loss
    moved = tf.train.ExponentialMovingAverage(0.5).apply(tf.trainable_variables())
    if recipe.average == "updates":
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, moved)
        return loss
    with tf.control_dependencies([moved]):
        return tf.identity(loss)


def _adam(args: Args) -> Any:
    return tf.train.AdamOptimizer(0.02, epsilon=EPSILON)


OPTIMIZERS: Dict[str, Callable[[Args], Any]] = {
    "sgd": lambda args: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda args: tf.train.MomentumOptimizer(0.05, 0.9),
    "nesterov": lambda args: tf.train.MomentumOptimizer(0.05, 0.9, use_nesterov=True),
    "adam": _adam,
    "adagrad": lambda args: tf.train.AdagradOptimizer(0.1),
    "rmsprop": lambda args: tf.train.RMSPropOptimizer(0.01, momentum=0.5, epsilon=EPSILON),
    "ftrl": lambda args: tf.train.FtrlOptimizer(0.1, l2_regularization_strength=0.01),
    "lars": lambda args: own.Lars(0.05, 0.9),
    "bert": lambda args: own.BertAdamW(0.02, 0.1, ("/b$",)),
    "adamw": lambda args: own.AdamW(0.02, epsilon=EPSILON),
    "frozen": lambda args: own.Frozen(0.1, "layer0/"),
    "each": lambda args: own.ClippedEach(0.2),
    "together": lambda args: own.ClippedTogether(0.02, epsilon=EPSILON),
    "wrapper": lambda args: own.Wrapped(tf.train.MomentumOptimizer(0.1, 0.9)),
    "groups": lambda args: {"layer0": _adam(args), "": tf.train.AdagradOptimizer(0.1)},
}
