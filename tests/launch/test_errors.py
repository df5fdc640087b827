"""Every error of the launcher has the exit code of the contract."""

import re

import pytest

from launch import errors
from launch.check.fleet_rules import ROWS
from launch.errors import CannotStart, HostProblem, Interrupted, LaunchError, ProblemKind, UsageError
from tests.support import ROOT


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LaunchError("x"), 1),
        (UsageError("x"), 2),
        (HostProblem("h", ProblemKind.UNREACHABLE, "x"), 3),
        (CannotStart([HostProblem("h", ProblemKind.UNREACHABLE, "x")]), 3),
        (Interrupted(2), 130),
        (Interrupted(15), 143),
    ],
)
def test_an_error_has_the_exit_code_of_its_kind(error: LaunchError, code: int) -> None:
    assert error.exit_code == code


def test_a_run_that_cannot_start_names_every_host_on_a_line() -> None:
    assert (
        str(
            CannotStart(
                [
                    HostProblem("a", ProblemKind.UNREACHABLE, "no SSH"),
                    HostProblem("b", ProblemKind.UNREACHABLE, "port 1"),
                ]
            )
        )
        == "a: no SSH\nb: port 1"
    )


CODE = {path: path.read_text() for path in (ROOT / "launch").rglob("*.py") if path.name != "fleet_rules.py"}


@pytest.mark.parametrize("kind", ProblemKind)
def test_every_kind_of_problem_is_drawn_raised_and_has_its_row_in_the_documentation(kind: ProblemKind) -> None:
    assert re.search(rf"\b{kind.value}\b", errors.__doc__ or "")
    assert any(f"ProblemKind.{kind.name}" in text or f'"kind": "{kind.value}"' in text for text in CODE.values())
    row = f"| `{ROWS[kind].finding}` |"
    lines = (ROOT / "docs" / "check.md").read_text().splitlines()
    assert [line for line in lines if line.startswith(f"| `{kind.value}` |") and line.endswith(row)]


def test_every_kind_that_the_agent_names_is_one_that_the_launcher_knows() -> None:
    named = {kind for path, text in CODE.items() for kind in re.findall(r'"error":.*"kind": "([^"]+)"', text)}
    assert named and named <= {kind.value for kind in ProblemKind}
