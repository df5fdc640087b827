"""The lead records the curve of a run from the reports of its chief, its evaluator, or a program's worker."""

import math
from typing import Any, Dict

from launch.agent.service.recovery import Earlier, continue_run
from tests.support.agent.histories import Replay, advanced, killed, started, succeeded


def trained(*tasks: str, **plan: Any) -> Replay:
    """A run whose tasks have started."""
    run = Replay(*tasks, **plan)
    for order in run.begin():
        run.at(0.0, started(order.task))  # type: ignore[union-attr]
    return run


def points(*steps: int, since: int = 0) -> Dict[str, Any]:
    """The curve of a report: points of one step each, whose loss is the step's number."""
    return {"curve": [[step, float(step), 1] for step in steps], "curve_from": since}


def history(run: Replay) -> Any:
    return run.status()["history"]


def test_the_points_of_the_chief_are_recorded_once_each_and_of_no_other_worker() -> None:
    run = trained()
    run.at(1.0, advanced("worker:0", 2, **points(1, 2)))
    run.at(2.0, advanced("worker:1", 3, loss=9.0))
    run.at(2.0, advanced("worker:0", 4, **points(1, 2, 3, 4)))
    run.at(2.1, advanced("worker:0", 4, **points(1, 2, 3, 4)))
    found = history(run)
    assert (found["step"], found["loss"]) == ([1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0])
    assert found["steps_per_second"] == [0.0, 0.0, 2.0, 2.0]


def test_a_new_process_of_the_chief_continues_the_curve_from_its_checkpoint() -> None:
    run = trained()
    run.at(1.0, advanced("worker:0", 4, checkpoint_step=2, **points(1, 2, 3, 4)))
    run.at(2.0, killed("worker:0"))
    run.at(9.0)
    run.at(9.0, started("worker:0", 1))
    run.at(10.0, advanced("worker:0", 3, 1, **points(3)))
    found = history(run)
    assert found["step"] == [1, 2, 3] and found["marks"] == {"checkpoint": [2]}


def test_held_out_data_is_recorded_from_the_evaluator_and_from_the_end() -> None:
    run = trained("ps:0@a", "worker:0@a", "evaluator:0@a")
    run.at(1.0, advanced("evaluator:0", 2, metrics={"auc": 0.5, "odd": math.nan}))
    run.at(2.0, advanced("worker:0", 4, **points(4)))
    run.at(3.0, succeeded("worker:0", step=4, metrics={"auc": 0.75}))
    assert history(run)["evaluations"] == [{"auc": 0.5, "odd": None, "step": 2}, {"auc": 0.75, "step": 4}]


def test_a_program_has_the_losses_that_its_chief_reports_or_another_worker_until_then() -> None:
    run = trained(judge="exit", steps=None)
    run.at(1.0, advanced("worker:1", 1, loss=5.0, reports=1))
    run.at(2.0, advanced("worker:0", 2, loss=4.0, reports=1))
    run.at(3.0, advanced("worker:1", 3, loss=9.0, reports=2))
    assert history(run)["loss"] == [5.0, 4.0]


def test_a_lead_that_continues_a_run_continues_its_curve() -> None:
    run, after = trained(), Replay()
    run.at(1.0, advanced("worker:0", 2, **points(1, 2)))
    continue_run(after.run, Earlier(run.run.status(), 1.0, 1.0), "a", 5.0)
    assert history(after) == history(run)
