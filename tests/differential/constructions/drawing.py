"""A seed is a construction and a manner, in any process and on any Python."""

import random
from dataclasses import replace
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from tests.differential.constructions.axes import AXES, ONLY_RESOURCES, STATES, Construction, Weights, sensible
from tests.differential.constructions.manners import MANNERS, Drawn, Manner, legal

_RESUMED, _TRAINED = 0.4, 0.1  # of those with a recurrent state, and of changes within a function
Allowed = Mapping[str, Sequence[Any]]


def drawn(number: int, allowed: Allowed = {}) -> Drawn:  # noqa: B006 (it is only read)
    """What a seed draws; of an axis in ``allowed`` one of the values there."""
    chance = random.Random(number)
    construction = Construction(**_one_of_each(AXES, chance, allowed))
    manner = Manner(**_one_of_each(MANNERS, chance, allowed))
    construction, manner = _at_risk(construction, manner, chance.random(), allowed)
    construction = sensible(construction)
    return Drawn(number, construction, legal(manner, construction))


def _at_risk(of: Construction, manner: Manner, share: float, allowed: Allowed) -> Tuple[Construction, Manner]:
    """Both, more often with two values that are of interest together."""
    if of.target in STATES and share < _RESUMED and True in allowed.get("resumed", [True]):
        manner = replace(manner, resumed=True)  # what a worker keeps
    if of.inside in ONLY_RESOURCES and share < _TRAINED and "trained" in allowed.get("target", ["trained"]):
        of = replace(of, target="trained")  # what is changed where nobody sees it
    return of, manner


def all_of(numbers: Sequence[int], allowed: Allowed) -> List[Drawn]:
    """What these seeds draw, without those that only another runtime has."""
    found = [drawn(number, allowed) for number in numbers]
    return [each for each in found if each.way.runtime in allowed.get("runtime", MANNERS["runtime"])]


def _one_of_each(axes: Mapping[str, Weights], chance: random.Random, allowed: Allowed) -> Dict[str, Any]:
    return {axis: _one(_allowed(weights, allowed.get(axis)), chance.random()) for axis, weights in axes.items()}


def _allowed(weights: Weights, values: Any) -> Weights:
    return weights if values is None else {value: weight for value, weight in weights.items() if value in values}


def _one(weights: Weights, share: float) -> Any:
    """The value at this share, from 0 to 1, of all weights: ``random.choices`` may differ between Pythons."""
    left = share * sum(weights.values())
    for value, weight in weights.items():
        left -= weight
        if left < 0:
            return value
    return value
