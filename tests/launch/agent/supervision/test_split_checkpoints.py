"""Which checkpoints of programs are named because no restart can read them. Replayed."""

from typing import Any, Dict, List

import pytest

from launch.agent.protocol.messages import Measured, RestartRequested
from tests.support.agent.histories import Replay, ended, killed, started

SPLIT = {"logdir/checkpoint": "model.ckpt-20"}
WHOLE = {"logdir/checkpoint": ""}
NONE: Dict[str, str] = {}
WITH_PS, ALONE = ("ps:0@a", "worker:0@b", "worker:1@b"), ("worker:0@a", "worker:1@b")


class Program(Replay):
    """A program whose hosts report what it saves."""

    def __init__(self, *tasks: str, judge: str = "exit", **options: Any):
        super().__init__(*tasks, judge=judge, **options)
        self.up()

    def report(self, now: float, task: str, saved: Dict[str, str], **more: Any) -> None:
        use = {"attempt": self.run.tasks[task].attempt, **({"saved": saved} if saved else {}), **more}
        others = {name: {"attempt": 0} for name, each in self.run.tasks.items() if each.plan.host == self.host(task)}
        assert self.at(now, Measured({**({} if more else others), task: use})) == []

    def host(self, task: str) -> str:
        return self.run.tasks[task].plan.host

    def warnings(self) -> List[str]:
        found: List[str] = self.status()["warnings"]
        return found


def test_a_checkpoint_whose_values_a_ps_has_is_named_at_the_second_look_and_once() -> None:
    run = Program(*WITH_PS)
    run.report(3.0, "worker:0", SPLIT)
    assert run.warnings() == []
    for now in (6.0, 9.0):
        run.report(now, "worker:0", SPLIT)
        assert run.warnings() == [
            "b: logdir/checkpoint names model.ckpt-20, but its values are not there: each ps writes into its own "
            "folder, and no restart can read them; name a folder that all hosts share, or run every ps on b"
        ]


def test_one_look_suffices_where_the_task_has_ended() -> None:
    run = Program(*WITH_PS)
    run.report(3.0, "worker:0", SPLIT, ended=True)
    assert len(run.warnings()) == 1


def test_a_look_that_finds_the_values_begins_the_count_again() -> None:
    run = Program(*WITH_PS)
    for second, saved in enumerate((SPLIT, WHOLE, SPLIT, NONE)):
        run.report(3.0 * second, "worker:0", saved)
    assert run.warnings() == []


def test_tasks_of_one_host_with_a_folder_each_are_sent_to_an_absolute_one() -> None:
    run = Program("ps:0@b", "worker:0@b")
    run.report(3.0, "worker:0", SPLIT, ended=True)
    assert run.warnings()[0].endswith("no restart can read them; name an absolute folder")


@pytest.mark.parametrize(("tasks", "judge"), [(ALONE, "exit"), (WITH_PS, "outcome")])
def test_neither_a_job_nor_a_program_without_ps_splits_a_checkpoint(tasks: Any, judge: str) -> None:
    run = Program(*tasks, judge=judge)
    run.report(3.0, "worker:0", SPLIT, ended=True)
    assert run.warnings() == []


def fail(run: Program, attempt: int) -> None:
    """Worker 1 fails, and its next attempt starts."""
    now = 20.0 + 10 * attempt
    run.at(now, ended("worker:1", "exception", f"the ranks differ {attempt}", attempt))
    run.at(now + 5)
    run.at(now + 5, started("worker:1", attempt + 1))


def test_a_worker_that_fails_after_a_restart_without_the_others_checkpoint_is_explained() -> None:
    run = Program(*ALONE)
    run.report(3.0, "worker:0", WHOLE)
    run.report(3.0, "worker:1", {})
    fail(run, 0)
    assert run.warnings() == []  # a program may be right: no restart has failed yet
    fail(run, 1)
    assert run.warnings() == [
        "logdir/checkpoint is on a alone: workers that restarted on b found no checkpoint; name a folder that all "
        "hosts share"
    ]


@pytest.mark.parametrize("other", [WHOLE, {"other/checkpoint": ""}])
def test_a_program_whose_hosts_all_have_checkpoints_is_not(other: Dict[str, str]) -> None:
    run = Program(*ALONE)
    run.report(3.0, "worker:0", WHOLE)
    run.report(3.0, "worker:1", other)
    fail(run, 0)
    fail(run, 1)
    assert run.warnings() == []


def test_the_end_of_a_task_without_lists_hides_none_of_its_host() -> None:
    run = Program(*ALONE)
    for task in ("worker:0", "worker:1"):
        run.report(3.0, task, WHOLE)
    run.report(4.0, "worker:1", NONE, ended=True)
    fail(run, 0)
    fail(run, 1)
    assert run.warnings() == []


def test_a_worker_that_was_ordered_to_end_proves_nothing() -> None:
    run = Program(*ALONE)
    run.report(3.0, "worker:0", WHOLE)
    run.report(3.0, "worker:1", {})
    fail(run, 0)
    run.at(40.0, RestartRequested(["worker:1"]))
    run.at(41.0, killed("worker:1", 1))
    assert run.warnings() == []
