"""The launcher's request for a SavedModel of a run's checkpoint, and what the host sends."""

from dataclasses import dataclass
from typing import Optional

from launch.agent.wire.run_request import RunRequest


@dataclass(frozen=True)
class ExportRequest:
    """Export a checkpoint; for the host of the run's chief.

    Answers are {"stage": words} while it works, {"file": name, "bytes": size} for each file of the SavedModel, then
    {"data": base64} for its content, and {"done": what it has, "checkpoint": name} at the end.

    Attributes:
      run: the run, with the chief as its only task.
      step: the checkpoint of this step; None for the newest.
      path: a checkpoint anywhere on this host; None for one of the run.
      save: whether the run, if it trains, saves first.
    """

    run: RunRequest
    step: Optional[int] = None
    path: Optional[str] = None
    save: bool = False
