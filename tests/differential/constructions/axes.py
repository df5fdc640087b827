"""The axes of a construction: what an author of TensorFlow may write, one value for each.

A weight is how often a seed draws a value, beside the others of its axis.
"""

import json
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Dict, Mapping

Weights = Mapping[Any, int]

AXES: Dict[str, Weights] = {
    # Where a term without examples enters the loss.
    "term": {"none": 48, "loss": 6, "by_hand": 27, "regularizer": 15, "activity": 12, "layer_losses": 13},
    # Where a term by hand lies meanwhile; "object": in a list of the author's own.
    "collection": {"regularization": 55, "losses": 15, "own": 15, "object": 15},
    # How what changes a variable is registered.
    "update": {
        "none": 36,
        "update_ops": 35,
        "waited": 14,
        "average": 9,
        "average_waited": 6,
        "batch_norm": 5,
        "own_collection": 6,
    },
    # What is changed: a number, a variable that the optimizer trains, a recurrent state, local or global.
    "target": {"counter": 60, "trained": 13, "local_state": 20, "state": 7},
    # Whether the loss reads a counter before it changes.
    "read": {False: 60, True: 40},
    # The scope of what is added by hand; "layer": that of an object which is made once, and called by each copy.
    "scope": {"none": 42, "cleared": 18, "absolute": 18, "variable": 8, "layer": 26},
    # The function within which the variable changes; without such a change, the one that computes the term.
    "inside": {
        "plain": 46,
        "function": 13,
        "defun": 8,
        "cond": 7,
        "while": 7,
        "cond_v2": 7,
        "while_v2": 6,
        "custom_gradient": 10,
    },
    "wrapper": {
        "none": 62,
        "keys": 4,
        "keys_slash": 4,
        "keys_leaf": 3,
        "keys_misspelt": 2,
        "regularized": 9,
        "decaying": 5,
        "scaled": 4,
        "skipping": 10,
        "clipping": 5,
        "nonlinear": 4,
        "averaging": 4,
        "counting": 4,
        "decayed": 7,
        "passing": 3,
        "adamw": 2,
        "sync_replicas": 2,
        "drop_stale": 2,
    },
    "base": {"sgd": 50, "momentum": 25, "adam": 25},
    # "mixed": a trained variable of float64 beside those of float32.
    "dtype": {"float32": 94, "mixed": 6},
    "resource": {False: 50, True: 50},
}
ONLY_RESOURCES = ("function", "defun", "cond_v2", "while_v2")  # may not change the older kind of variables
CONTROL_FLOW_V2 = ("cond_v2", "while_v2")
MAPPINGS = ("keys", "keys_slash", "keys_leaf", "keys_misspelt")
ONLY_TF1 = {"update": ("batch_norm",), "wrapper": ("adamw", "drop_stale")}
BY_HAND = ("update_ops", "waited", "own_collection")
STATES = ("local_state", "state")


@dataclass(frozen=True)
class Construction:
    """One value of each axis; by itself a plain model."""

    term: str = "none"
    collection: str = "regularization"
    update: str = "none"
    target: str = "counter"
    read: bool = False
    scope: str = "none"
    inside: str = "plain"
    wrapper: str = "none"
    base: str = "sgd"
    dtype: str = "float32"
    resource: bool = False

    def as_json(self) -> str:
        """The construction as the name of a model."""
        return json.dumps({"construction": asdict(self)}, sort_keys=True)

    def __str__(self) -> str:
        plain = Construction()
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        return " ".join(f"{name}={value}" for name, value in said.items() if value != getattr(plain, name)) or "plain"

    @property
    def must_be_refused(self) -> bool:
        """Whether one process cannot train it, or nobody can take its parts for the whole."""
        found = self.wrapper in ("keys_misspelt", "sync_replicas", "drop_stale")
        return found or (self.update != "none" and self.target == "trained")

    @property
    def settings(self) -> Mapping[str, Any]:
        """What it needs of ``train`` besides the manner in which it is trained."""
        return {"on_nan": "ignore"} if self.wrapper == "skipping" else {}

    @property
    def same(self) -> bool:
        """Whether every copy must have the same examples: what the model does depends on which are in its batch.

        A state of all that UPDATE_OPS change is by the examples of the chief's first tower, as batch statistics are.
        """
        return self.update == "batch_norm" or (self.target == "state" and self.update == "update_ops")


def from_json(text: str) -> Construction:
    """The construction of that name."""
    return Construction(**json.loads(text)["construction"])


def sensible(drawn: Construction) -> Construction:
    """The same construction, without what plain TensorFlow refuses or leaves to chance, or what would do nothing."""
    for repair in (_updated, _inside, _scoped, _wrapped, _termed, _plain_where_nothing_is):
        drawn = repair(drawn)
    return drawn


def _updated(drawn: Construction) -> Construction:
    if drawn.update not in BY_HAND:
        return replace(drawn, target="counter", read=False)
    return replace(drawn, read=drawn.read and drawn.target == "counter")


def _inside(drawn: Construction) -> Construction:
    """A recurrent state changes outside of functions, and averages make variables, which functions must not do."""
    if drawn.update in BY_HAND:
        plain = drawn.target in STATES
    else:
        plain = drawn.update != "none" or drawn.term not in ("loss", "by_hand", "regularizer")
    # While variables are made, a function cannot be called.
    plain |= drawn.update == "none" and drawn.term == "regularizer" and drawn.inside != "custom_gradient"
    # A loss of several optimizers is differentiated several times.
    plain |= drawn.inside == "custom_gradient" and drawn.wrapper in MAPPINGS and drawn.update != "none"
    drawn = replace(drawn, inside="plain") if plain else drawn
    return replace(drawn, resource=True) if drawn.inside in ONLY_RESOURCES else drawn


def _scoped(drawn: Construction) -> Construction:
    if drawn.update == "batch_norm":
        return replace(drawn, scope="layer")
    return drawn


def _wrapped(drawn: Construction) -> Construction:
    if drawn.update == "own_collection":
        return replace(drawn, wrapper="none")  # its optimizer waits for that collection
    if drawn.wrapper == "adamw":
        return replace(drawn, base="adam")
    if drawn.wrapper == "regularized" and drawn.term not in ("by_hand", "regularizer"):
        return replace(drawn, term="by_hand", collection="regularization")
    return drawn


def _termed(drawn: Construction) -> Construction:
    kept = drawn.term == "by_hand" and drawn.wrapper != "regularized"
    return drawn if kept else replace(drawn, collection="regularization")


def _plain_where_nothing_is(drawn: Construction) -> Construction:
    nothing = drawn.update == "none" and drawn.term in ("none", "loss", "regularizer")
    return replace(drawn, scope="none") if nothing else drawn
