"""A program that reports its steps has what a job has: steps, rates, slow workers, losses and "training again"."""

from dataclasses import replace
from typing import Any, Dict, List

import pytest

from launch.agent.protocol.messages import Joined, Tick
from launch.agent.service.recovery import Earlier, continue_run
from launch.agent.supervision.status import judge_rates
from launch.view import run_text
from tests.support.agent.histories import Replay, advanced, ended, in_words, incidents, killed, left, started

WORKERS = ("worker:0", "worker:1")


class Program(Replay):
    """A program of one ps and two workers, unless others are named, which run from 0 on."""

    def __init__(self, *tasks: str) -> None:
        super().__init__(*tasks, judge="exit", steps=None)
        for order in self.begin():
            self.at(0.0, started(order.task))  # type: ignore[union-attr]
        self._reports: Dict[Any, int] = {}

    def steps(self, now: float, to: int, *tasks: str, attempt: int = 0, **more: Any) -> None:
        """Workers report a step."""
        for task in tasks or WORKERS:
            number = self._reports[task, attempt] = self._reports.get((task, attempt), 0) + 1
            self.at(now, advanced(task, to, attempt, reports=number, **more))

    def told(self, *keys: str) -> List[Any]:
        """Values of the status."""
        status = self.status()
        return [status[key] for key in keys]


@pytest.fixture
def program() -> Program:
    """A program that takes a step a second, and is at step 10 after 10 s."""
    program = Program()
    for second in range(1, 11):
        program.steps(second, second, loss=10.0 - second, rate=88.0)
    return program


def test_step_rate_and_loss_are_in_the_status(program: Program) -> None:
    assert program.told("global_step", "steps", "steps_per_second", "examples_per_second", "loss") == [
        10, None, 1.0, 176.0, 0.0,
    ]  # fmt: skip
    assert [task["step"] for task in program.status()["tasks"]] == [None, 10, 10]
    assert run_text.progress(program.run.status()) == "step 10, 1.0 steps/s, 176 examples/s, loss 0"
    assert program.status()["effective"]["share"] == 0.9


def test_without_a_rate_no_examples_are_made_up() -> None:
    program = Program()
    for second in range(1, 11):
        program.steps(second, 10 * second)
    assert program.told("steps_per_second", "examples_per_second") == [10.0, 0.0]
    assert run_text.progress(program.run.status()) == "step 100, 10.0 steps/s"


def test_a_rate_that_is_not_reported_any_more_goes_down(program: Program) -> None:
    program.at(20.0)
    assert program.told("steps_per_second", "examples_per_second") == [0.474, 83.4]


def test_where_the_chief_prints_nothing_another_worker_stands_for_it() -> None:
    program = Program()
    for second in range(1, 5):
        program.steps(second, second, "worker:1", loss=0.5)
    assert program.told("global_step", "loss", "steps_per_second") == [4, 0.5, 1.0]


def test_a_program_that_reports_nothing_is_as_before() -> None:
    program = Program()
    program.at(5, killed("worker:1"))
    program.at(7, Tick())
    program.at(7, started("worker:1", 1))
    assert program.told("global_step", "effective", "loss") == [None, None, None]
    assert in_words(incidents(program)[0]).endswith("unknown whether it continued from a checkpoint")


def test_where_an_evaluator_alone_reports_steps_no_worker_is_awaited() -> None:
    program = Program("worker:0@a", "worker:1@b", "evaluator:0@a")
    program.steps(1, 100, "evaluator:0")
    program.at(5, killed("worker:1"), killed("evaluator:0"))
    program.at(7, Tick(), started("worker:1", 1), started("evaluator:0", 1))
    assert [told["open"] for told in incidents(program)] == [False, False]
    program.at(5000, ended("worker:1", "exception", "another problem", 1))
    assert [told["cause"] for told in incidents(program)][2:] == ["another problem"]


def test_after_a_restart_it_trains_again_and_what_it_lost_is_known(program: Program) -> None:
    program.at(10.5, killed("worker:1"))
    program.at(11.5, Tick(), started("worker:1", 1))
    assert incidents(program)[0]["open"]
    program.steps(15.5, 7, "worker:1", attempt=1)
    (told,) = incidents(program)
    assert (told["again_s"], told["lost_steps"], told["open"]) == (5.0, 4, True)
    program.steps(20, 11, "worker:1", attempt=1)
    assert in_words(incidents(program)[0]) == (
        "worker:1@b killed by SIGKILL at step 10, training again after 5.0 s, 4 steps lost, "
        "9.0 s until they were taken again"
    )
    assert program.told("lost_steps") == [4]


@pytest.mark.parametrize(("first", "words"), [(8, "back"), (1, "began again from step 0")])
def test_the_first_worker_s_checkpoint_is_not_known_so_only_its_first_step_counts(first: int, words: str) -> None:
    program = Program("worker:0@a")
    for second in range(1, 11):
        program.steps(second, second, "worker:0")
    program.at(10.5, killed("worker:0"))
    program.at(11.5, Tick(), started("worker:0", 1))
    program.steps(12.5, first, "worker:0", attempt=1)
    lost = 10 - first + 1
    assert in_words(incidents(program)[0]) == (
        f"worker:0@a killed by SIGKILL at step 10, {words} after 2.0 s, {lost} steps lost"
    )


def test_a_ps_that_reports_nothing_is_back_with_the_next_step_of_a_worker(program: Program) -> None:
    program.at(10.5, killed("ps:0"))
    program.at(11.5, Tick(), started("ps:0", 1))
    assert incidents(program)[0]["open"]
    program.steps(13.5, 11, "worker:0")
    (told,) = incidents(program)
    assert (told["open"], told["again_s"], told["lost_steps"]) == (False, 3.0, 0)


def test_one_that_ends_well_without_another_step_is_not_awaited(program: Program) -> None:
    program.at(10.5, killed("worker:1"))
    program.at(11.5, Tick(), started("worker:1", 1))
    program.at(12, left("worker:1", 1), left("worker:0"))
    (told,) = incidents(program)
    assert not told["open"] and "restarted after 1.0 s" in in_words(told)
    assert program.run.state.result == "succeeded"


def test_a_step_that_begins_anew_in_every_epoch_is_no_loss_and_is_named(program: Program) -> None:
    program.steps(11, 1)
    program.steps(12, 2)
    assert program.told("global_step", "lost_steps", "steps_per_second") == [2, 0, pytest.approx(0.0, abs=1.0)]
    why = "its step went back from 10 to 1 without a restart; count the steps over the whole training"
    assert program.told("warnings") == [[f"progress of worker:0: {why}"]]
    program.at(12.5, killed("worker:1"))
    program.at(13.5, Tick(), started("worker:1", 1))
    program.steps(14, 3, "worker:0")
    program.steps(15, 3, "worker:1", attempt=1)
    program.steps(16, 4)
    assert not incidents(program)[0]["open"]


def test_a_count_of_each_epoch_goes_on_after_a_failure_at_the_end_of_one(program: Program) -> None:
    program.at(10.5, killed("worker:1"))
    program.at(11.5, Tick(), started("worker:1", 1))
    for epoch in range(4):  # no step is newer than the last before the failure
        for number in range(1, 11):
            program.steps(11 + 10 * epoch + number, number, "worker:1", attempt=1)
    (told,) = incidents(program)
    assert (told["open"], told["lost_steps"]) == (False, 10)
    assert program.status()["effective"]["rolled_back_s"] <= 10.0


def test_a_ps_that_fails_again_takes_the_worker_that_has_restarted_meanwhile_back(program: Program) -> None:
    program.at(10.5, killed("ps:0"))
    program.at(11.5, Tick(), started("ps:0", 1))
    program.at(12, killed("worker:1"))
    program.at(13, Tick(), started("worker:1", 1))
    program.steps(14, 7, "worker:1", attempt=1)
    program.steps(25, 9, "worker:1", attempt=1)
    program.at(26, killed("ps:0", 1))
    program.at(28, Tick(), started("ps:0", 2))
    program.steps(30, 8, "worker:1", attempt=1)
    assert program.told("warnings") == [[]]


def test_a_restart_by_hand_loses_what_the_new_process_takes_again(program: Program) -> None:
    program.run.tasks["worker:1"].attempt = 1
    program.at(11, started("worker:1", 1))
    program.steps(12, 5, "worker:1", attempt=1)
    assert program.told("lost_steps", "warnings") == [6, []]


def test_a_worker_with_fewer_examples_per_second_is_slow() -> None:
    program = Program()
    for second in range(1, 11):
        program.steps(second, second, "worker:0", rate=100.0)
        program.steps(second, second, "worker:1", rate=60.0)
    assert [task["straggler"] for task in program.status()["tasks"]] == [False, False, True]
    assert program.told("waiting_share") == [None]
    assert run_text.slowness(program.run.status()) == [
        "slow: worker:1@b: fewer examples per second than the other workers"
    ]


def test_rates_are_compared_with_the_median() -> None:
    assert judge_rates({"a": 100.0, "b": 95.0, "c": 30.0, "d": 70.0, "e": 100.0}) == ("c", "d")
    assert judge_rates({"a": 100.0, "b": 81.0}) == judge_rates({"a": 1.0}) == judge_rates({}) == ()


def test_a_remark_before_the_first_step_is_no_step() -> None:
    program = Program()
    remark = replace(advanced("worker:0"), progress={"step": None, "warnings": ["no line matches"]})
    program.at(1, remark)
    assert program.told("global_step", "warnings") == [None, ["no line matches"]]
    program.steps(5, 5000)
    program.steps(6, 5001)
    assert program.told("steps_per_second") == [1.0]


def test_the_next_lead_still_expects_steps(program: Program) -> None:
    earlier = Earlier(program.run.status(), 1.0, 10.0)
    after = Replay(judge="exit", steps=None)
    continue_run(after.run, earlier, "a", 12.0)
    after.at(12.0, *(Joined(host) for host in after.run.plan.hosts), started("worker:0"))
    assert incidents(after)[0]["open"]
