"""A job's tasks say themselves that they have succeeded; of other programs the exit code decides."""

from launch.agent.supervision.ending import means_success
from tests.support.agent.histories import failed, left
from tests.support.agent.histories import succeeded as said_so


def test_a_task_of_a_job_has_succeeded_when_it_says_so_however_its_process_went_down() -> None:
    assert means_success(said_so("worker:0", code=-9), "outcome", ordered=True)
    assert not means_success(left("worker:0"), "outcome", ordered=False)
    assert not means_success(failed("worker:0", code=0), "outcome", ordered=False)


def test_a_program_has_succeeded_when_it_leaves_by_itself_with_exit_code_0() -> None:
    assert means_success(left("worker:0"), "exit", ordered=False)
    assert not means_success(left("worker:0", code=1), "exit", ordered=False)
    assert not means_success(left("worker:0"), "exit", ordered=True)
