"""Trains a construction in one process with plain TensorFlow; nothing of this project is loaded here."""

from typing import Any, Mapping

from tests.differential import reference
from tests.differential.authors import named
from tests.differential.constructions.axes import from_json
from tests.differential.constructions.functions import control_flow_of


def train(request: Mapping[str, Any]) -> reference.Trained:
    """Trains what ``Drawn.reference`` asks for.

    Raises:
      ValueError: nothing moves, so there is nothing to compare with.
    """
    with control_flow_of(from_json(request["author"]).inside):
        trained = reference.train(
            named(request["author"]), request["args"], request["batch"], request["clip_norm"], request["rounded"]
        )
    if not reference.moved(trained):
        raise ValueError("nothing moves")
    return trained
