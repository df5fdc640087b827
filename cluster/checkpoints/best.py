"""Decide which checkpoint is the best by a metric on held-out data, and whether training has stopped improving.

The file ``best.json``, next to the checkpoints, records the decision. So the count of the patience continues after a
restart of the chief, and in a resumed run.
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
    """The best measurement so far, and the measurements since then.

    Attributes:
      metric, goal: the compared metric, and whether its ``max`` or its ``min`` is best.
      step, value: the step and the value of the best checkpoint; None until a checkpoint has a value.
      newest: the last measured step.
      worse: the number of measurements after the best one; none of them was better.
      last, why: the step at which training ends, and the reason; None before the decision to end.
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
    """Return the record with which a chief begins: ``found``, the record in its folder, or else an empty record.

    The result is empty if ``found`` has another metric or goal than ``settings``. ``found`` may contain a decision to
    end training. The result lacks this decision if ``settings`` now has more patience than ``found`` has used.
    """
    if found is None or (found.metric, found.goal) != (settings.metric, settings.goal):
        return BestSoFar(settings.metric, settings.goal)
    return replace(found, last=None, why=None) if is_patient(settings, found) else found


def measured(record: BestSoFar, step: int, value: Optional[float]) -> BestSoFar:
    """Return ``record``, updated for the measured ``value`` of the checkpoint of ``step``.

    If training returns to an earlier checkpoint, it may measure a step again; the patience counts the step only once.
    If that step is the best one, the new value replaces the old one.

    Args:
      value: the value of the metric; None or NaN if it is undefined. An undefined value is never better.
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
    """Return whether training continues.

    Training ends after ``settings.patience`` measurements that were not better; if that is None, it never ends early.
    """
    return settings.patience is None or record.worse < settings.patience


def reason(record: BestSoFar) -> str:
    """Return why training ends early: ``auc was not above its best value, 0.8123 of step 800, in 3 measurements``."""
    times = f"in {record.worse} measurements" if record.worse > 1 else "in the next measurement"
    if record.value is None:
        return f"{record.metric} was undefined {times}"
    side = "above" if record.goal == "max" else "below"
    return f"{record.metric} was not {side} its best value, {record.value:.4g} of step {record.step}, {times}"


def read(folder: Path) -> Optional[BestSoFar]:
    """Return the record in ``folder``; None where the folder has no record.

    Raises:
      OSError: the record cannot be read.
      ValueError: the file contains no record.
    """
    try:
        return read_record(folder / BEST, BestSoFar, _LARGEST)
    except FileNotFoundError:
        return None


def write(folder: Path, record: BestSoFar) -> None:
    """Write ``record`` into ``folder``, and replace an earlier record. Raises OSError."""
    shared_files.replace_file(folder / BEST, json.dumps(asdict(record)))
