"""The lines of a worker on its steps."""

import math
from types import SimpleNamespace
from typing import Any

from cluster.training.callbacks import Step
from cluster.training.reporting import TrainingProgress


def test_a_worker_that_waits_for_records_says_so_once(capsys: Any) -> None:
    reporter: Any = SimpleNamespace(due=lambda: True, progress=lambda *of, **more: None)
    progress = TrainingProgress(reporter, 9, lambda: {})
    stepper: Any = SimpleNamespace(dropped=0, waited_s=0.0)
    progress.begin(0)
    for number, examples in [(1, 8), (1, 0), (1, 0), (2, 8), (2, 0), (2, 0)]:
        progress.note(Step(number, 0.5 if examples else math.nan, examples), stepper)
    progress.begin(1)  # a return to a checkpoint
    progress.note(Step(2, 0.5, 8), stepper)
    lines = [line.split(" loss")[0] for line in capsys.readouterr().out.splitlines()]
    waits = ["step 1/9", "step 1/9: waiting for records", "step 2/9", "step 2/9: waiting for records"]
    assert lines == ["joined at step 0", *waits, "joined at step 1", "step 2/9"]
