"""Every error of the launcher has the exit code of the contract."""

import pytest

from launch.errors import CannotStart, HostProblem, Interrupted, LaunchError, UsageError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LaunchError("x"), 1),
        (UsageError("x"), 2),
        (HostProblem("h", "x"), 3),
        (CannotStart([HostProblem("h", "x")]), 3),
        (Interrupted(2), 130),
        (Interrupted(15), 143),
    ],
)
def test_an_error_has_the_exit_code_of_its_kind(error: LaunchError, code: int) -> None:
    assert error.exit_code == code


def test_a_run_that_cannot_start_names_every_host_on_a_line() -> None:
    assert str(CannotStart([HostProblem("a", "no SSH"), HostProblem("b", "port 1")])) == "a: no SSH\nb: port 1"
