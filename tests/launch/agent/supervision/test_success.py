"""A job's tasks say themselves that they have succeeded; of other programs the exit code and the role decide."""

from typing import Sequence, Set

import pytest

from launch.agent.supervision.success import deciding, succeeded
from tests.launch.agent.supervision.histories import failed, left, run_plan
from tests.launch.agent.supervision.histories import succeeded as said_so


@pytest.mark.parametrize(
    ("tasks", "judge", "who"),
    [
        (["ps:0@a", "worker:0@a", "worker:1@b"], "outcome", {"worker:0"}),
        (["ps:0@a", "chief:0@a", "worker:0@b"], "outcome", {"chief:0"}),
        (["ps:0@a", "chief:0@a", "worker:0@b"], "exit", {"chief:0"}),
        (["ps:0@a", "worker:0@a", "worker:1@b"], "exit", {"worker:0", "worker:1"}),
    ],
)
def test_the_chief_decides_or_where_programs_have_none_every_worker(
    tasks: Sequence[str], judge: str, who: Set[str]
) -> None:
    assert deciding(run_plan(tasks, judge=judge)) == who


def test_a_task_of_a_job_has_succeeded_when_it_says_so_however_its_process_went_down() -> None:
    assert succeeded(said_so("worker:0", code=-9), "outcome", told_to_end=True)
    assert not succeeded(left("worker:0"), "outcome", told_to_end=False)
    assert not succeeded(failed("worker:0", code=0), "outcome", told_to_end=False)


def test_a_program_has_succeeded_when_it_leaves_by_itself_with_exit_code_0() -> None:
    assert succeeded(left("worker:0"), "exit", told_to_end=False)
    assert not succeeded(left("worker:0", code=1), "exit", told_to_end=False)
    assert not succeeded(left("worker:0"), "exit", told_to_end=True)
