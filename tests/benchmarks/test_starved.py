"""Whoever a run accuses is counted, and a start is over when every worker has taken its steps."""

from typing import Any, Mapping

from tests.benchmarks.starved import STEPS, accusations, stepped
from tests.launch.agent.supervision.test_hang_detection import sign
from tests.support.agent.histories import Replay, advanced


def replay() -> Replay:
    """A run of one ps and two workers that have taken a step."""
    found = Replay()
    found.up()
    found.at(1.0, advanced("worker:0", 1, examples=1), advanced("worker:1", 1, examples=1))
    return found


def test_a_run_in_which_nobody_is_at_fault_accuses_nobody() -> None:
    assert accusations(replay().status()) == []
    assert accusations({}) == []  # before there is a status


def test_a_frozen_verdict_is_counted_and_so_is_the_restart_that_follows() -> None:
    run = replay()
    run.at(100.0, sign("worker:1", state="T", stopped_s=10.0))
    assert accusations(run.status()) == [
        "incident: worker:1@b: frozen: stopped by a signal for 10 s at step 1, not back since"
    ]
    run.run.tasks["worker:1"].attempt = 1
    assert accusations(run.status())[1:] == ["restarted: worker:1@b (1)"]


def test_a_start_is_over_when_every_worker_has_taken_its_steps() -> None:
    run = replay()

    def status(*steps: int) -> Mapping[str, Any]:
        for index, step in enumerate(steps):
            run.at(2.0, advanced(f"worker:{index}", step, examples=step))
        return run.status()

    assert not stepped({}, 2)
    assert not stepped(status(STEPS, STEPS - 1), 2)
    assert stepped(status(STEPS, STEPS), 2)
    assert not stepped(status(STEPS, STEPS), 3)
