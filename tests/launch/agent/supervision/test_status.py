"""The status shows what a supervisor knows; a straggler is slow by the time that it needs for itself."""

import math
from typing import Any, Dict

import pytest

from launch.agent.protocol.messages import KillRequested, Measured, Signs, Tick
from launch.agent.supervision.status import Judgement, judge
from launch.agent.supervision.task_records import Pace
from tests.support.agent.histories import DONE, Replay, advanced, failed, started, succeeded


def paces(**own_and_wait_ms: float) -> Dict[str, Pace]:
    """Workers of one run whose steps take 100 ms: what each needs for itself."""
    return {name: Pace(own, 100 - own) for name, own in own_and_wait_ms.items()}


def test_of_equal_workers_none_is_slow_and_nothing_is_lost() -> None:
    assert judge(paces(a=80, b=80, c=80)) == Judgement((), 0.0)


@pytest.mark.parametrize("others", [1, 2, 3, 30])
def test_one_that_needs_twice_as_long_is_slow_among_however_many(others: int) -> None:
    judged = judge(paces(slow=90, **{f"w{i}": 45 for i in range(others)}))
    assert judged.stragglers == ("slow",)
    assert judged.waiting_share == pytest.approx(0.45)


def test_several_are_told_with_the_slowest_first() -> None:
    assert judge(paces(a=30, b=60, c=90, d=30, e=30)).stragglers == ("c", "b")


def test_a_little_slower_is_not_slow() -> None:
    assert judge(paces(a=80, b=90, c=85)).stragglers == ()


def test_what_even_the_slowest_waits_for_is_nobodys_fault() -> None:
    judged = judge({"slow": Pace(60, 40), "quick": Pace(30, 70)})
    assert judged.stragglers == ("slow",) and judged.waiting_share == pytest.approx(0.3)


def test_steps_of_a_millisecond_have_no_stragglers() -> None:
    assert judge({"a": Pace(0.5, 0.5), "b": Pace(1.5, 0.1)}).stragglers == ()


def test_a_worker_alone_has_nobody_to_wait_for() -> None:
    assert judge(paces(a=80)) == Judgement((), None)
    assert judge({}) == Judgement((), None)


# -- what is shown


def test_the_status_is_the_contract_and_few_fields_more() -> None:
    status = set(Replay().status())
    contract = {
        "run", "name", "state", "global_step", "steps", "steps_per_second", "examples_per_second", "loss",
        "checkpoint_step", "tasks",
    }  # fmt: skip
    assert contract <= status
    assert status - contract == {
        "cause", "metrics", "checkpoint", "evaluation", "waiting_share", "incidents", "cause_incident", "lost_steps",
        "lost_seconds", "silent", "formation", "replicas", "started", "ended", "updated", "training_metrics",
            "best", "best_checkpoint", "departed", "hook_problem", "ended_early", "effective", "warnings",
        "remaining", "history",
    }  # fmt: skip


def test_the_status_of_a_task_is_the_contract_and_few_fields_more() -> None:
    task = set(Replay().status()["tasks"][0])
    contract = {
        "role", "index", "host", "address", "gpus", "state", "pid", "exit_code", "restarts", "step", "step_time_ms",
        "log", "cause",
    }  # fmt: skip
    assert contract <= task
    assert task - contract == {
        "dropped_gradients", "wait_ms", "straggler", "bytes_in_per_second", "bytes_out_per_second", "gpu_percent",
        "gpu_memory_bytes", "doing", "quiet",
    }  # fmt: skip


def test_before_anything_happened_the_summary_claims_nothing() -> None:
    summary = Replay().status()
    assert (summary["state"], summary["steps"], summary["steps_per_second"]) == ("starting", 100, 0.0)
    assert [summary[key] for key in ("global_step", "loss", "checkpoint_step", "cause")] == [None] * 4


def test_a_run_that_ends_after_a_return_to_a_checkpoint_shows_its_last_step_and_not_the_farthest() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("worker:0", 90, examples=10), advanced("worker:1", 90, examples=10), failed("ps:0"))
    replay.at(5, started("ps:0", 1))
    replay.at(6, advanced("worker:0", 50, examples=20), advanced("worker:1", 50, examples=20))
    replay.at(7, KillRequested("the operator"))
    replay.at(8, *(failed(task, attempt) for task, attempt in (("ps:0", 1), ("worker:0", 0), ("worker:1", 0))))
    assert (replay.status()["state"], replay.status()["global_step"]) == ("stopped", 50)


def test_the_global_step_is_the_farthest_workers_and_the_loss_the_chiefs() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("worker:0", 40, loss=0.5, checkpoint_step=20), advanced("worker:1", 42, loss=0.1))
    summary = replay.status()
    assert (summary["global_step"], summary["loss"], summary["checkpoint_step"]) == (42, 0.5, 20)


def test_the_warnings_are_the_chiefs() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("worker:0", 40, warnings=["args.x: unread"]), advanced("worker:1", 42, warnings=["y"]))
    assert replay.status()["warnings"] == ["args.x: unread"]


def test_rates_are_those_of_the_last_seconds_steps_of_the_chief_examples_of_all_workers() -> None:
    replay = Replay()
    replay.up()
    for second in range(1, 31):
        step = second if second <= 15 else 2 * second - 15  # slow at first, then twice as fast
        for task in ("worker:0", "worker:1"):
            replay.at(second, advanced(task, step, examples=64 * step))
    summary = replay.status()
    assert summary["steps_per_second"] == pytest.approx(2.0)
    assert summary["examples_per_second"] == pytest.approx(2.0 * 64 * 2)


def test_a_restarted_worker_begins_to_count_anew() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("worker:0", 10, examples=1000))
    replay.at(2, failed("worker:0"))
    replay.at(3, Tick(), started("worker:0", 1), advanced("worker:0", 10, attempt=1, examples=0))
    replay.at(4, advanced("worker:0", 11, attempt=1, examples=64))
    assert replay.status()["steps_per_second"] == pytest.approx(1.0)
    assert replay.status()["examples_per_second"] == pytest.approx(64.0)


def test_what_a_task_uses_of_its_host_is_shown_while_that_attempt_lives() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, Measured({"worker:1": {"attempt": 0, "bytes_in_per_second": 7, "gpu_percent": 80.0}}))
    shown = replay.run.tasks["worker:1"].status()
    assert (shown.bytes_in_per_second, shown.bytes_out_per_second, shown.gpu_percent) == (7, None, 80.0)
    replay.at(2, failed("worker:1"))
    assert replay.run.tasks["worker:1"].status().gpu_percent is None
    replay.at(3, Tick(), Measured({"worker:1": {"attempt": 0, "gpu_percent": 81.0}}))
    assert replay.run.tasks["worker:1"].status().gpu_percent is None


def test_a_ps_has_no_steps_of_its_own() -> None:
    replay = Replay()
    replay.up()
    replay.at(1, advanced("ps:0", 0))
    assert replay.run.tasks["ps:0"].status().step is None


def test_after_a_success_the_outcome_of_the_chief_is_what_is_shown() -> None:
    replay = Replay("ps:0@a", "worker:0@a")
    replay.up()
    replay.at(1, advanced("worker:0", 90, loss=0.5))
    replay.at(2, succeeded("worker:0"), succeeded("ps:0"))
    summary = replay.status()
    assert (summary["state"], summary["global_step"], summary["checkpoint_step"]) == ("succeeded", 100, 100)
    assert (summary["metrics"], summary["checkpoint"]) == (DONE["metrics"], DONE["checkpoint"])


def test_a_metric_that_is_undefined_is_null_and_no_number() -> None:
    replay = Replay("ps:0@a", "worker:0@a", "evaluator:0@a")
    replay.up()
    replay.at(1, advanced("evaluator:0", 90, metrics={"auc": math.nan, "loss": 0.5}))
    assert replay.status()["evaluation"] == {"step": 90, "auc": None, "loss": 0.5}
    replay.at(1, advanced("worker:0", 90, metrics={"auc": 0.75, "gauc": math.nan}))
    assert replay.status()["training_metrics"] == {"auc": 0.75, "gauc": None}
    replay.at(2, succeeded("worker:0", metrics={"auc": math.nan, "loss": math.inf, "top": 1.0}), succeeded("ps:0"))
    assert replay.status()["metrics"] == {"auc": None, "loss": None, "top": 1.0}


# -- stragglers


def report_paces(replay: Replay, *seconds: int) -> None:
    """Let worker:0 wait 60 % of each step for worker:1, which waits 10 %."""
    for second in seconds:
        for name, waited_s in (("worker:0", 0.6 * second), ("worker:1", 0.1 * second)):
            replay.at(second, advanced(name, step=10 * second, waited_s=waited_s))


def test_no_worker_is_slow_before_there_is_evidence_of_all() -> None:
    replay = Replay()
    replay.begin()
    for second in range(1, 6):
        report_paces(replay, second)
        status = replay.status()
        assert [task["straggler"] for task in status["tasks"]] == [False] * 3 and status["waiting_share"] is None
    report_paces(replay, 6)
    assert replay.status()["tasks"][2]["straggler"]
    replay.at(7, failed("worker:0"))
    replay.at(8, Tick(), started("worker:0", 1), advanced("worker:0", 70, attempt=1, waited_s=0.0))
    replay.at(9, advanced("worker:0", 71, attempt=1, waited_s=0.9))
    assert not replay.status()["tasks"][2]["straggler"]  # the first steps of another process prove nothing


def test_the_status_marks_the_slow_worker_and_tells_what_the_others_lose() -> None:
    replay = Replay()
    replay.begin()
    report_paces(replay, *range(1, 7))
    status = replay.status()
    assert [task["straggler"] for task in status["tasks"]] == [False, False, True]
    assert status["waiting_share"] == 0.5
    assert [task["wait_ms"] for task in status["tasks"]] == [None, 60.0, 10.0]


def test_the_status_has_what_a_task_does_of_its_start_until_it_runs() -> None:
    def doing(replay: Replay) -> Any:
        return [task["doing"] for task in replay.status()["tasks"]]

    def sign(attempt: int, what: str) -> Signs:
        return Signs({"worker:1": {"attempt": attempt, "state": "S", "stopped_s": 0.0, "silent_s": 0.0, "doing": what}})

    replay = Replay()
    replay.begin()
    replay.at(1.0, started("worker:1"), sign(0, "builds its graph"))
    assert doing(replay) == [None, None, "builds its graph"]
    replay.at(2.0, sign(1, "is of another attempt"))
    assert doing(replay) == [None, None, "builds its graph"]
    replay.at(3.0, advanced("worker:1"))
    assert doing(replay) == [None, None, None]


def test_what_a_host_or_a_task_reports_is_shown_under_its_name_and_overrides_nothing_that_the_lead_knows() -> None:
    replay = Replay()
    replay.up()
    forged = {"host": "x", "state": "lost", "restarts": 9, "straggler": True, "quiet": {"for_s": 1.0}, "cause": "x"}
    before = replay.status()["tasks"]
    replay.at(2.0, Measured({"worker:0": {"attempt": 0, "gpu_percent": 12.5, "unknown": 1, **forged}}))
    is_measured = [(task["role"], task["index"]) == ("worker", 0) for task in before]
    expected = [{**task, "gpu_percent": 12.5} if measured else task for task, measured in zip(before, is_measured)]
    assert replay.status()["tasks"] == expected and sum(is_measured) == 1
