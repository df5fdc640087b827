"""How a run ended, in the words and the exit code that an operator sees."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Callable, List, Mapping, Optional

import pytest

from launch.run import lifecycle
from launch.run.lifecycle import Ended
from launch.status.incident_status import Deed, IncidentStatus
from launch.status.run import RunStatus
from launch.target import Target
from launch.verbs import up
from launch.view.run_end import culprit, detached, ending, exit_code, first_failure
from tests.support.launch.fakes import spec_of
from tests.support.launch.statuses import status, task

DONE = status(
    task("ps:0@cpu01", "stopped"), task("worker:0@gpu01", "succeeded"), state="succeeded", steps=400, global_step=400,
    checkpoint="/w/runs/r-1/checkpoint/model-400", checkpoint_step=400, metrics={"accuracy": 0.9755, "loss": 0.08123},
    started="2026-11-23T12:00:00+00:00", ended="2026-11-23T12:01:23+00:00",
)  # fmt: skip
BROKEN = status(
    task("worker:1@gpu01"), task("worker:10@gpu01", "failed", cause="exit code 3"), state="failed",
    cause="worker:10@gpu01 (attempt 4 of 4): exit code 3",
)  # fmt: skip


def test_a_success_says_where_the_checkpoint_is_how_long_it_took_and_how_good_it_is() -> None:
    assert ending(DONE, "r.yaml") == [
        "checkpoint of step 400: gpu01:/w/runs/r-1/checkpoint/model-400",
        "r-1 succeeded: step 400, after 1:23",
        "held-out data: accuracy 97.5 %, loss 0.08123",
    ]


def test_a_run_to_the_end_of_its_data_ends_with_its_step_and_checkpoint_too() -> None:
    assert ending(replace(DONE, steps=None), "r.yaml") == ending(DONE, "r.yaml")


def test_an_early_end_has_its_reason_and_the_best_checkpoint_its_path() -> None:
    why = "auc was not above its best value, 0.8 of step 200, in 3 measurements"
    early = replace(DONE, steps=900, ended_early=why, best={"step": 200, "auc": 0.8}, best_checkpoint="/w/model-200")
    assert ending(early, "r.yaml")[:-1] == [
        "checkpoint of step 400: gpu01:/w/runs/r-1/checkpoint/model-400",
        "best checkpoint: step 200, auc 0.8: gpu01:/w/model-200",
        f"ended early: {why}",
        "r-1 succeeded: step 400, after 1:23",
    ]
    assert ending(early, "r.yaml", local=True)[1] == "best checkpoint: step 200, auc 0.8: /w/model-200"


def test_the_checkpoint_is_on_the_host_of_the_chief() -> None:
    tasks = [task("worker:0@gpu01", "succeeded"), task("chief:0@gpu09", "succeeded")]
    assert ending(replace(DONE, tasks=tasks), "r.yaml")[0].startswith("checkpoint of step 400: gpu09:/w/")


def test_a_foreign_program_that_succeeded_claims_no_steps() -> None:
    assert ending(status(state="succeeded"), "r.yaml") == ["r-1 succeeded"]


@pytest.mark.parametrize("state", ["failed", "stopped"])
def test_everything_else_says_its_cause(state: str) -> None:
    assert ending(status(state=state, cause="SIGINT to launch up"), "r.yaml") == [f"r-1 {state}: SIGINT to launch up"]


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"checkpoint_step": 40, "global_step": 40},
         ["saved: the checkpoint of step 40 on gpu01; continue with `launch up --resume --local r.yaml`"]),
        ({"checkpoint_step": 40, "global_step": 52},
         ["saved: the checkpoint of step 40 on gpu01, 12 steps before the end; continue with "
          "`launch up --resume --local r.yaml`"]),
        ({"global_step": 7}, ["no checkpoint was saved"]),
        ({}, []),  # it never trained
        ({"checkpoint_step": 40, "global_step": 40, "steps": None}, []),  # a foreign program
    ],
)  # fmt: skip
@pytest.mark.parametrize("state", ["failed", "stopped"])
def test_a_run_that_was_cut_off_reports_its_checkpoint_and_the_command_that_goes_on(
    fields: Mapping[str, Any], lines: List[str], state: str
) -> None:
    ended = status(state=state, cause="SIGINT", **{"steps": 100, **fields})
    assert ending(ended, "--local r.yaml") == [*lines, f"r-1 {state}: SIGINT"]


def test_the_command_that_goes_on_has_the_options_of_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Target("my r.yaml", True, ("args.rate=0.02", "args.words=a b"), ("gpu[01-02]",), ("worker:1",))
    stopped = status(state="stopped", cause="SIGINT", steps=100, checkpoint_step=40, global_step=40)
    lines: List[str] = []

    def trained(target: Target, start: Any, interrupts: Any, ending: Callable[[RunStatus], List[str]]) -> Ended:
        lines.extend(ending(stopped))
        return Ended(130, stopped)

    monkeypatch.setattr(Target, "spec", lambda self: None)
    monkeypatch.setattr(up, "train_with_failover", trained)
    assert up.train(asked, detach=False) == 130
    assert lines[0].split("continue with ")[1] == (
        "`launch up --resume --set args.rate=0.02 --set 'args.words=a b' --local --include 'gpu[01-02]' "
        "--exclude worker:1 'my r.yaml'`"
    )


def test_so_has_the_command_after_a_reboot_of_a_detached_run() -> None:
    fleet: Any = SimpleNamespace(slurm_job="", spec=spec_of("worker:0@h1"))
    run: Any = SimpleNamespace(plan=SimpleNamespace(run="r-1"), fragile=[(("h1",), "it has no systemd")])
    last = lifecycle._detached(fleet, run, Target("r.yaml", overrides=("args.rate=0.02",)))[-1]
    assert last.endswith("with `launch down r.yaml` and `launch up --set args.rate=0.02 r.yaml`")


@pytest.mark.parametrize(
    ("state", "signals", "code"),
    [("succeeded", [], 0), ("failed", [], 1), ("stopped", [], 1), ("stopped", [2], 130), ("failed", [15, 2], 143),
     ("succeeded", [2], 0)],
)  # fmt: skip
def test_the_exit_code_is_the_runs_or_the_signals_that_kept_it_from_succeeding(
    state: str, signals: List[int], code: int
) -> None:
    assert exit_code(status(state=state), signals) == code


def test_a_run_that_stopped_as_a_host_left_ends_as_by_sigterm() -> None:
    left = status(task("worker:0@gpu01", "stopped"), state="stopped", departed="gpu01")
    assert exit_code(left, []) == 143 and exit_code(left, [2]) == 130
    assert exit_code(replace(left, state="succeeded"), []) == 0


def test_a_run_of_which_no_task_ever_had_a_process_could_not_start() -> None:
    assert exit_code(status(task(pid=None), state="failed"), []) == 3


def test_a_task_that_waits_for_its_next_process_had_one() -> None:
    assert exit_code(status(task(pid=None, restarts=1), state="failed"), []) == 1


def test_the_task_of_the_incident_that_ended_the_run_is_the_one_whose_log_is_shown_whatever_the_cause_says() -> None:
    found = culprit(replace(BROKEN, incidents=[INCIDENT], cause_incident=3, cause="worker:1@gpu01: is fine"))
    assert found is not None and found.index == 10


@pytest.mark.parametrize("number", [None, 4, 3])
def test_a_run_that_failed_for_no_task_has_none_to_show(number: Optional[int]) -> None:
    of_a_host = replace(INCIDENT, role=None, index=None)
    assert culprit(replace(BROKEN, incidents=[of_a_host], cause_incident=number)) is None


INCIDENT = IncidentStatus(
    number=3, kind="exit", open=True, role="worker", index=10, host="gpu01", exit_code=3, cause="exit code 3", error="",
    step=7, log="/first.log", lines=["out of cheese"],
)  # fmt: skip


def test_the_attempt_that_failed_first_is_the_one_whose_lines_are_shown() -> None:
    told = replace(BROKEN, incidents=[INCIDENT], cause_incident=3)
    task10 = told.tasks[1]
    assert first_failure(told, task10) == INCIDENT
    assert first_failure(replace(told, cause_incident=None), task10) is None
    assert first_failure(told, replace(task10, log="/first.log")) is None  # its newest attempt: the log itself is read
    assert first_failure(told, told.tasks[0]) is None


def test_a_success_says_what_went_wrong_on_its_way() -> None:
    over = replace(INCIDENT, number=1, open=False, again_s=4.1, lost_steps=0, lost_seconds=3.0)
    assert ending(replace(DONE, incidents=[over]), "r.yaml")[0] == (
        "1 incident: worker:10@gpu01 left with exit code 3 at step 7, training again after 4.1 s, nothing lost"
    )


def test_a_failure_whose_cause_tells_all_is_not_told_twice() -> None:
    assert len(ending(replace(BROKEN, incidents=[INCIDENT]), "r.yaml")) == 1
    mended = replace(INCIDENT, number=1, did=[Deed(1.0, "restarted")])
    assert len(ending(replace(BROKEN, incidents=[mended]), "r.yaml")) == 2


def test_a_detached_run_says_how_to_see_and_to_end_it_and_what_it_does_not_survive() -> None:
    fragile = [("this machine", ""), ("h[2-3]", "anna does not linger there")]
    again = "--set train.steps=9 --local hosts.yaml"
    assert detached("r-1", "--local hosts.yaml", again, fragile, resumes=True) == [
        "r-1 is up; see it with `launch status --local hosts.yaml`, end it with `launch down --local hosts.yaml`",
        "a reboot of this machine ends the run",
        "a reboot of h[2-3] ends the run: anna does not linger there",
        "then continue the run with `launch down --local hosts.yaml` and "
        "`launch up --resume --set train.steps=9 --local hosts.yaml`",
    ]


def test_a_detached_program_of_others_is_started_again_without_resume() -> None:
    again = detached("r-1", "r.yaml", "--set restart.max=1 r.yaml", [("h1", "has no systemd")], resumes=False)[-1]
    assert again == "then start it again with `launch down r.yaml` and `launch up --set restart.max=1 r.yaml`"


def test_a_detached_run_that_every_host_returns_to_needs_no_advice() -> None:
    assert len(detached("r-1", "r.yaml", "r.yaml", [], resumes=True)) == 1


def test_a_detached_run_in_a_job_of_slurm_names_that_job_last() -> None:
    assert detached("r-1", "r.yaml", "r.yaml", [], True, "7")[1:] == ["the run ends with Slurm's job 7 at the latest"]


def test_a_receiver_that_takes_no_events_is_a_line_before_the_end() -> None:
    lines = ending(replace(BROKEN, hook_problem="on.failed (page): exit code 3"), "r.yaml")
    assert lines[0] == "hook on.failed (page): exit code 3" and lines[-1].startswith("r-1 failed: ")


@pytest.mark.parametrize("run", [DONE, BROKEN])
def test_what_the_author_may_have_forgotten_is_said_before_the_end(run: Any) -> None:
    lines = ending(replace(run, warnings=["args.rat: unread", "job.py:3: same"]), "r.yaml")
    assert lines[:2] == ["warning: args.rat: unread", "warning: job.py:3: same"]
