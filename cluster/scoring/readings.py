"""The values of a model's metrics over examples."""

import math
from typing import Dict, Mapping, NamedTuple, Sequence

import numpy as np

from cluster.scoring.measures import BadExamples, measure
from cluster.scoring.slices import largest_slices


class Reading(NamedTuple):
    """A metric whose parts are columns of examples: {part: index of the column}."""

    kind: str
    columns: Mapping[str, int]
    most: int  # slices with results of their own


def read_metrics(readings: Mapping[str, Reading], columns: Sequence[np.ndarray]) -> Dict[str, float]:
    """Return the value of each metric and of its slices: ``auc``, ``auc/FR``, ``auc/others``; NaN for an undefined one.

    Args:
      columns: [n] each; columns of different metrics may have different lengths.

    Raises:
      BadExamples: a metric has no meaning for its columns; names the metric.
    """
    found: Dict[str, float] = {}
    for name, reading in readings.items():
        parts = {part: columns[index] for part, index in reading.columns.items()}
        try:
            found.update(_with_slices(name, reading, parts))
        except BadExamples as error:
            raise BadExamples(f"the metric {name}: {error}") from None
    return found


def in_words(values: Mapping[str, float]) -> str:
    """Return metrics as text: ``auc 0.7812, gauc undefined``."""
    shown = {name: f"{value:.4g}" if math.isfinite(value) else "undefined" for name, value in values.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


def _with_slices(name: str, reading: Reading, parts: Dict[str, np.ndarray]) -> Dict[str, float]:
    values = parts.pop("slice", None)
    found = {name: measure(reading.kind, parts)}
    if values is None:
        return found
    if len(values) != len(next(iter(parts.values()))):
        raise BadExamples(f"expected a slice of each example, found {len(values)} slices")
    for each in largest_slices(values, reading.most):
        found[f"{name}/{each.name}"] = measure(reading.kind, {part: of[each.examples] for part, of in parts.items()})
    return found
