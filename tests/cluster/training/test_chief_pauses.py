"""What a chief does between two steps and at the end, and what it has reported when something fails then."""

from pathlib import Path
from typing import Any, Dict

import pytest

from cluster.protocol.outcome import read_outcome, read_progress
from cluster.spec import load
from cluster.task import Best, Checkpoint, Train
from tests.support.training.alone import train_alone
from tests.support.training.jobs import counted, table
from tests.support.training.threads import ThreadedRun
from tests.support.waiting import eventually

WHEN: Dict[str, Dict[str, Any]] = {
    "at the end": {},
    "while it trains": {"best": Best(min="loss"), "checkpoint": Checkpoint(every_s=0)},
}


@pytest.mark.parametrize("when", sorted(WHEN))
def test_the_checkpoint_is_reported_before_an_evaluation_can_fail(tmp_path: Path, when: str) -> None:
    hosts = tmp_path / "hosts.yaml"
    hosts.write_text("name: r\njob: x.py\ncluster: {ps: ['a:1'], worker: ['a:2']}\n")
    train = Train(tower_batch_size=2, steps=5, **WHEN[when])
    ThreadedRun(load(hosts), counted.__name__, train, {"bad": True}, tmp_path / "saved", tmp_path).start()
    outcome = eventually("the end", lambda: read_outcome(tmp_path / "worker.0"))
    assert "no held-out examples today" in (outcome.traceback or "")
    progress = read_progress(tmp_path / "worker.0")
    assert progress is not None and progress.checkpoint_step == (1 if WHEN[when] else 5)


def test_the_outcome_of_a_run_that_is_verified_has_what_was_compared(tmp_path: Path) -> None:
    outcome = train_alone(table, tmp_path, {"examples": 32}, steps=4, batch_size=8, towers=1, verify=True)
    assert outcome.succeeded and outcome.metrics["verified_steps"] == 4
