"""Kinds of constructions that once trained to another result without a word, as values of the axes.

A seed meets a row whose values it has. With the row's mend taken out, it differs.
"""

import itertools
from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from tests.differential.constructions.axes import AXES, CONTROL_FLOW_V2, STATES, Construction, sensible
from tests.differential.constructions.manners import BATCH, Drawn

Values = Mapping[str, Tuple[Any, ...]]
_IN_THE_LOSS = tuple(wrapper for wrapper in AXES["wrapper"] if wrapper != "regularized")
_ON_TF1: Values = {"runtime": ("tf1",)}
_LEAVES_ITS_COPY = ("cleared", "absolute", "layer")
_UPDATED: Dict[str, Any] = {"update": "update_ops"}  # without which some values mean nothing
_HIDDEN = ("function", "defun", *CONTROL_FLOW_V2)


@dataclass(frozen=True)
class Row:
    """One kind: ``of`` a construction, in a ``way``; ``copies`` and ``parts`` are the fewest of these."""

    about: str
    of: Values
    way: Values = field(default_factory=dict)
    copies: int = 1
    parts: int = 1
    most_parts: int = BATCH

    def is_met_by(self, drawn: Drawn) -> bool:
        """Whether a seed's construction and manner are of this kind."""
        has = all(getattr(drawn.construction, axis) in values for axis, values in self.of.items())
        has = has and all(getattr(drawn.way, axis) in values for axis, values in self.way.items())
        return has and drawn.way.copies >= self.copies and self.parts <= drawn.way.parts <= self.most_parts


ROWS: Dict[str, Row] = {
    "S1 by hand": Row(
        "a decay that the model adds to a collection, and sums into its loss",
        {"term": ("by_hand",), "collection": ("regularization",), "wrapper": _IN_THE_LOSS},
        copies=2,
    ),
    "S1 activity": Row(
        "a layer's activity_regularizer, which joins a collection", {"term": ("activity",)}, _ON_TF1, copies=2
    ),
    "S1 layer": Row(
        "the losses of a layer that is made once",
        {"term": ("activity", "layer_losses"), "scope": ("layer",)},
        _ON_TF1,  # Keras 3 keeps those of the last call
        copies=2,
    ),
    "S1 object": Row(
        "a decay in the list of an object that is made once, which grows with each call",
        {"term": ("by_hand",), "collection": ("object",)},
        copies=2,
    ),
    "S2 regularized": Row(
        "an optimizer that passes the loss and the regularization on", {"wrapper": ("regularized",)}, parts=2
    ),
    "S2 decaying": Row("an optimizer that adds its variables' squares", {"wrapper": ("decaying",)}, parts=2),
    "S2 nonlinear": Row("an optimizer whose loss is not linear in the mean", {"wrapper": ("nonlinear",)}, parts=2),
    "S3 slash": Row("a key of several optimizers that ends in a slash", {"wrapper": ("keys_slash",)}),
    "S3 misspelt": Row("a key that is no variable's", {"wrapper": ("keys_misspelt",)}),
    "S4 dropped": Row(
        "UPDATE_OPS outside of the scope of a copy",
        {"update": ("update_ops", "average"), "scope": ("cleared", "absolute")},
    ),
    "S4 backwards": Row(
        "UPDATE_OPS that join while the loss is differentiated",
        {"inside": ("custom_gradient",), "update": ("update_ops",)},
    ),
    "S4 twice": Row(
        "a loss that waits for a change outside of the scope of its copy",
        {"update": ("waited", "average_waited"), "scope": _LEAVES_ITS_COPY},
        copies=2,
    ),
    "S4 layer": Row(
        "an object that is made once and registers a change in each call",
        {"update": ("update_ops", "average", "batch_norm"), "scope": ("layer",)},
        copies=2,
    ),
    "S5 hidden": Row(
        "a change within a function", {"inside": _HIDDEN, "update": ("update_ops", "waited"), "target": ("counter",)}
    ),
    "S5 trained": Row(
        "a trained variable, changed within a function",
        {"inside": _HIDDEN, "update": ("update_ops", "waited"), "target": ("trained",)},
    ),
    "S6": Row("a learning rate in a variable that UPDATE_OPS decay", {"wrapper": ("decayed",)}),
    "S7 average": Row("an average by the number of the step", {"wrapper": ("averaging",)}),
    "S7 counts": Row("an apply_gradients that counts the step itself", {"wrapper": ("counting",)}),
    "S7 skips": Row("a step that a loss-scaling optimizer skips", {"wrapper": ("skipping",)}, most_parts=1),
    "S7 on a part": Row("a scale that is decided on a part of the batch", {"wrapper": ("skipping",)}, parts=2),
    "S9 shared": Row("a recurrent state of the worker that its towers share", {"target": ("local_state",)}, copies=2),
    "S9 others": Row(
        "a recurrent state of each worker that UPDATE_OPS change",
        {"target": ("local_state",), "update": ("update_ops",)},
        {"workers": (2,)},
    ),
    "S9 resumed": Row("a recurrent state of each worker, after --resume", {"target": STATES}, {"resumed": (True,)}),
    "own collection": Row("a change in a collection for which the optimizer waits", {"update": ("own_collection",)}),
    "crash mixed": Row("variables of float32 beside float64", {"dtype": ("mixed",)}),
    "crash control flow": Row(
        "the newer control flow", {"inside": CONTROL_FLOW_V2}, {"sync": ("plain", "clipped", "backup")}
    ),
    "crash stock": Row("an optimizer that synchronises", {"wrapper": ("sync_replicas", "drop_stale")}),
    "crash minimize": Row("a minimize that only passes arguments on", {"wrapper": ("passing", "adamw")}),
}


def rows_of(drawn: Drawn) -> List[str]:
    """Names of the rows that a seed meets."""
    return [name for name, row in ROWS.items() if row.is_met_by(drawn)]


def examples(name: str) -> List[Construction]:
    """The constructions of a row, plain in every other axis, that a seed may draw."""
    of = ROWS[name].of
    combined = [dict(zip(of, values)) for values in itertools.product(*of.values())]
    plain: Dict[str, Any] = {}
    found = [sensible(Construction(**{**more, **values})) for more in (plain, _UPDATED) for values in combined]
    return [each for each in dict.fromkeys(found) if all(getattr(each, axis) in values for axis, values in of.items())]


def sample(seeds: Sequence[Drawn]) -> List[Drawn]:
    """A seed for each row that any of them meets: the one that meets the fewest others, and takes the fewest graphs."""
    chosen = []
    for row in ROWS.values():
        mine = [each for each in seeds if row.is_met_by(each)]
        chosen += sorted(mine, key=_cost)[:1]
    return list(dict.fromkeys(chosen))


def _cost(drawn: Drawn) -> Tuple[Any, ...]:
    """What speaks against a seed: something else may hide its row, it meets others, or takes long."""
    waits = drawn.construction.update in ("waited", "average_waited") and drawn.way.copies > 1
    hidden = drawn.construction.must_be_refused or waits or drawn.way.wire != "float32"
    return hidden, len(rows_of(drawn)), _graphs(drawn), drawn.number


def _graphs(drawn: Drawn) -> int:
    """How many graphs of how many copies its runs build."""
    clients = 1 if drawn.way.sync == "in-graph" else drawn.way.workers
    return clients * len(drawn.args()["legs"]) * (3 + drawn.way.copies)
