"""Decide which checkpoint is the best by a metric on held-out data, and whether training has stopped to get better.

The decision is a record, ``best.json``, beside the checkpoints. So a chief that starts again, and a run that is
resumed, go on with the same patience.
"""

import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Optional

from cluster.protocol import shared_files
from cluster.protocol.checkpoint_files import BEST
from cluster.protocol.shared_files import read_record
from cluster.task import Best

_LARGEST = 4096  # bytes of the file


@dataclass(frozen=True)
class BestSoFar:
    """The best measurement so far, and what followed it.

    Attributes:
      metric, goal: what is compared, and whether its ``max`` or its ``min`` is best.
      step, value: of the best checkpoint; None before one had a value.
      newest: the last step that was measured.
      worse: how many measurements since the best one were not better.
      last, why: the step at which training ends, and the reason, once that is decided.
    """

    metric: str
    goal: str
    step: Optional[int] = None
    value: Optional[float] = None
    newest: int = 0
    worse: int = 0
    last: Optional[int] = None
    why: Optional[str] = None


def begin(settings: Best, found: Optional[BestSoFar]) -> BestSoFar:
    """Return the record with which a chief begins.

    A record of another metric does not count. Nor does a decision to end, where the patience is longer now.
    """
    if found is None or (found.metric, found.goal) != (settings.metric, settings.goal):
        return BestSoFar(settings.metric, settings.goal)
    return replace(found, last=None, why=None) if is_patient(settings, found) else found


def measured(record: BestSoFar, step: int, value: Optional[float]) -> BestSoFar:
    """Return the record after a checkpoint was measured.

    A step may be measured again, after training went back to an earlier one. It counts once for the patience. A
    checkpoint that was written again replaces the best one of the same step.

    Args:
      value: None, or NaN, where the metric is not defined: never better.
    """
    is_new = step > record.newest
    newest = max(record.newest, step)
    known = None if value is None or math.isnan(value) else value
    if known is not None and (step == record.step or _is_better(record, known)):
        return replace(record, step=step, value=known, newest=newest, worse=0 if is_new else record.worse)
    return replace(record, newest=newest, worse=record.worse + is_new)


def _is_better(record: BestSoFar, value: float) -> bool:
    if record.value is None:
        return True
    return value > record.value if record.goal == "max" else value < record.value


def is_patient(settings: Best, record: BestSoFar) -> bool:
    """Return whether training goes on."""
    return settings.patience is None or record.worse < settings.patience


def reason(record: BestSoFar) -> str:
    """Return why training ended early: ``auc was not above 0.8123, of step 800, in 3 measurements``."""
    times = f"in {record.worse} measurements" if record.worse > 1 else "in the next measurement"
    if record.value is None:
        return f"{record.metric} was undefined {times}"
    side = "above" if record.goal == "max" else "below"
    return f"{record.metric} was not {side} {record.value:.4g}, of step {record.step}, {times}"


def read(folder: Path) -> Optional[BestSoFar]:
    """Return the record in a folder; None where there is none.

    Raises:
      OSError: it cannot be read.
      ValueError: it is no record.
    """
    try:
        return read_record(folder / BEST, BestSoFar, _LARGEST)
    except FileNotFoundError:
        return None


def write(folder: Path, record: BestSoFar) -> None:
    """Replace the record in a folder. Raises OSError."""
    shared_files.replace_file(folder / BEST, json.dumps(asdict(record)))
