"""With backup workers a slow one is waited for by nobody, the chief included."""

import re
from pathlib import Path
from typing import Any, Dict

import pytest

from tests.support.nightly import few
from tests.support.training.processes import Cluster

STEPS = 30
FAST_S, SLOW_S = 0.01, 1.0


class Run:
    """2 + 1 workers, of which ``slow`` is: what each one joined at, gave, and lost because it came late."""

    def __init__(self, folder: Path, slow: int):
        args: Dict[str, Any] = {"pause_s": [SLOW_S if index == slow else FAST_S for index in range(3)]}
        with Cluster(folder, "tests.support.training.jobs.uneven", workers=3) as cluster:
            cluster.start_all({"steps": STEPS, "batch_size": 2, "backup_workers": 1}, args)
            self.step = cluster.finish().step
            logs = [cluster.log("worker", index) for index in range(3)]
            told = [cluster.progress("worker", index) for index in range(3)]
        self.joined = [
            int(number) for log in logs for number in re.findall(r"^joined at step (\d+)", log, re.MULTILINE)
        ]
        self.given = [int(word) for word in re.findall(r"^gradients given.*: (.*)", logs[0], re.MULTILINE)[0].split()]
        self.dropped = [progress.dropped_gradients for progress in told if progress]


@pytest.mark.parametrize("slow", few([0, 2], [0]))  # the chief, or another
def test_a_slow_worker_is_not_waited_for_and_costs_the_others_no_gradient(tmp_path: Path, slow: int) -> None:
    run = Run(tmp_path, slow)
    fast = [index for index in range(3) if index != slow]
    alone = max(run.joined[index] for index in fast)  # steps before both fast ones were there need the slow one
    assert run.step == STEPS
    for index in fast:
        assert run.given[index] == STEPS - run.joined[index]
        assert run.dropped[index] <= 1  # in the step in which it joined
    assert run.given[slow] < STEPS / 2 + alone
    assert run.given[slow] - 1 - alone <= run.dropped[slow] <= run.given[slow]
