"""What a run that meets no fault gives: the job's gradient descent, worked out here, step by step."""

from typing import Any

import numpy as np

from tests.chaos.job.quadratic import WEIGHTS, examples
from tests.chaos.verdict import Undisturbed

RATE = 0.01  # so low that a step more or less shows in the variables, even after the last one


def undisturbed(steps: int) -> Undisturbed:
    """The variables after so many steps."""
    x, y = examples(0)
    weights, bias = np.zeros(WEIGHTS), 0.0
    for _ in range(steps):
        error = x @ weights + bias - y
        weights, bias = weights - RATE * 2 * (x.T @ error) / len(y), bias - RATE * 2 * error.mean()
    return Undisturbed({"weights": weights.tolist(), "bias": [float(bias)]}, _loss(weights, bias))


def _loss(weights: Any, bias: float) -> float:
    x, y = examples(1)
    return float(np.square(x @ weights + bias - y).mean())
