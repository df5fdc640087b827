"""What a run that meets no fault gives: the job's gradient descent or Adam, worked out here, step by step."""

from typing import Any, Dict, List, NamedTuple, Optional

import numpy as np

from tests.chaos.job.quadratic import EPSILON, WEIGHTS, examples
from tests.chaos.verdict import Undisturbed

BETAS = 0.9, 0.999  # TensorFlow's defaults


class Settings(NamedTuple):
    """How the job trains: the rate so low that a step more or less shows in the variables, even after the last one.

    The decay is so strong that its absence shows where the variables need only be close.
    """

    rate: float
    decay: float


SETTINGS: Dict[str, Settings] = {"sgd": Settings(0.01, 0.0), "adam": Settings(0.003, 0.5)}


def undisturbed(steps: int, optimizer: str, rows: int, settings: Optional[Settings] = None) -> Undisturbed:
    """Work out what a checkpoint has after so many steps, and the loss; the settings are those of the trials."""
    settings = settings or SETTINGS[optimizer]
    rule = _Adam(settings.rate) if optimizer == "adam" else _Descent(settings.rate)
    x, y = examples(0)
    values = {"weights": np.zeros(WEIGHTS), "bias": np.zeros(1)}
    for _ in range(steps):
        error = x @ values["weights"] + values["bias"] - y
        slope = 2 * (x.T @ error) / len(y) + settings.decay * values["weights"]
        rule.update(values, {"weights": slope, "bias": np.array([2 * error.mean()])})
    saved = {name: value.tolist() for name, value in {**values, **rule.kept}.items()}
    units = {name: float(rows) ** -power for name, power in rule.powers.items()}
    return Undisturbed(saved, _loss(values, settings.decay), units)


class _Descent:
    """Gradient descent.

    ``kept`` is what a checkpoint has of the optimizer, by name. A row's gradient is a part of the whole one, one of so
    many rows; ``powers`` says of which of these values it is a part, and to which power.
    """

    def __init__(self, rate: float):
        self.rate = rate
        self.kept: Dict[str, Any] = {}
        self.powers: Dict[str, int] = {}

    def update(self, values: Dict[str, Any], slopes: Dict[str, Any]) -> None:
        """Take one step."""
        for name, slope in slopes.items():
            values[name] = values[name] - self.rate * slope


class _Adam(_Descent):
    """Adam, with the means of gradients and of their squares under TensorFlow's names."""

    def __init__(self, rate: float):
        super().__init__(rate)
        names: List[str] = ["weights", "bias"]
        self.kept = {f"{name}/{slot}": np.zeros(1) for name in names for slot in ("Adam", "Adam_1")}
        self.kept.update(beta1_power=np.array([BETAS[0]]), beta2_power=np.array([BETAS[1]]))
        self.powers = {f"{name}/{slot}": power for name in names for slot, power in (("Adam", 1), ("Adam_1", 2))}

    def update(self, values: Dict[str, Any], slopes: Dict[str, Any]) -> None:
        """Take one step."""
        kept, (beta1, beta2) = self.kept, BETAS
        rate = self.rate * np.sqrt(1 - kept["beta2_power"]) / (1 - kept["beta1_power"])
        for name, slope in slopes.items():
            kept[f"{name}/Adam"] = mean = beta1 * kept[f"{name}/Adam"] + (1 - beta1) * slope
            kept[f"{name}/Adam_1"] = square = beta2 * kept[f"{name}/Adam_1"] + (1 - beta2) * slope**2
            values[name] = values[name] - rate * mean / (np.sqrt(square) + EPSILON)
        kept.update(beta1_power=kept["beta1_power"] * beta1, beta2_power=kept["beta2_power"] * beta2)


def _loss(values: Dict[str, Any], decay: float) -> float:
    x, y = examples(1)
    error = x @ values["weights"] + values["bias"] - y
    return float(np.square(error).mean() + decay * np.square(values["weights"]).sum() / 2)
