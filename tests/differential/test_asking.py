"""A process that hangs or dies costs its own request, and no other."""

import sys
from pathlib import Path
from typing import Any, Iterator

import pytest

from tests.differential.asking import Asked


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Any]:
    """A process that does as it is told, twice at most."""
    process = Asked(Path(sys.executable), "tests.differential.obedient", tmp_path / "log", 2)
    yield process
    process.end()


def test_who_hangs_or_dies_is_replaced(asked: Any) -> None:
    first = asked.ask({"do": "answer"}, 60)["pid"]
    assert asked.ask({"do": "hang"}, 0.3) == {"hung": 0.3}
    assert asked.ask({"do": "answer"}, 60)["pid"] != first
    assert asked.ask({"do": "die"}, 60) == {"died": 3}
    assert asked.ask({"do": "raise"}, 60) == {"raised": "ValueError: as told"}


def test_a_process_answers_so_many_requests_and_no_more(asked: Any) -> None:
    pids = [asked.ask({"do": "answer"}, 60)["pid"] for _ in range(4)]
    assert pids[0] == pids[1] != pids[2] == pids[3]


def test_what_it_prints_is_no_answer(asked: Any, tmp_path: Path) -> None:
    assert "pid" in asked.ask({"do": "print"}, 60)
    assert "printed as told" in (tmp_path / "log").read_text()
