"""``make nightly`` runs every part, whatever another part comes to, and names those that failed."""

import sys
from importlib.util import find_spec
from typing import List, Sequence

import pytest

from tests.nightly import PARTS, main


def test_a_part_that_fails_ends_no_other_part(capsys: "pytest.CaptureFixture[str]") -> None:
    commands: List[Sequence[str]] = []

    def run(argv: Sequence[str]) -> int:
        commands.append(argv)
        return int("tests.attack" in argv)

    assert main([], run) == 1
    assert [argv[2] for argv in commands] == [command.split()[0] for command in PARTS.values()]
    assert capsys.readouterr().out.splitlines()[-1] == f"== {len(PARTS) - 1} of {len(PARTS)} parts are right; attack"


def test_some_parts_are_asked_for_with_other_seeds() -> None:
    commands: List[Sequence[str]] = []
    assert main(["chaos", "--first", "700"], lambda argv: commands.append(argv) or 0) == 0  # type: ignore[func-returns-value]
    assert commands == [[sys.executable, "-m", "tests.chaos", "-n", "60", "--seed", "700"]]


def test_an_unknown_part_is_refused(capsys: "pytest.CaptureFixture[str]") -> None:
    with pytest.raises(SystemExit):
        main(["chaoss"])
    assert "found chaoss" in capsys.readouterr().err


@pytest.mark.parametrize("part", PARTS)
def test_every_part_is_a_module_that_runs(part: str) -> None:
    module = PARTS[part].split()[0]
    assert find_spec(module) is not None and find_spec(f"{module}.__main__") is not None
