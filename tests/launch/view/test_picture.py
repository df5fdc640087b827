"""A run drawn for the room that a terminal has."""

import io
import random
from typing import List, Sequence

import pytest
from rich.console import Console

from launch.status.run import FormationStatus, RunStatus
from launch.view.live_view import BELOW, Picture
from launch.view.watch_keys import Choices
from tests.launch.view.captures import FOLDER, captures, drawn, failed, failing, healed, healthy
from tests.support.launch.statuses import status, task


@pytest.mark.parametrize("name", sorted(captures()))
def test_a_run_looks_as_in_its_capture(name: str) -> None:
    assert drawn(*captures()[name]) == (FOLDER / name).read_text(), "python -m tests.launch.view.captures writes it"


def test_a_picture_fits_its_terminal_and_leaves_out_no_trouble() -> None:
    chance = random.Random(3)
    for _ in range(120):
        width, height = chance.randrange(80, 220), chance.randrange(24, 70)
        kind, number = chance.choice([healthy, failing]), chance.choice([3, 5, 17, 32, 200, 1000])
        run = kind(number)
        lines = drawn(run, width, height).splitlines()
        assert max(map(len, lines)) <= width
        assert len(lines) <= height - BELOW
        text = " ".join(line.strip() for line in lines)
        if kind is failing:
            trouble = run.tasks[1], run.tasks[-1]
            rows = [line.split() for line in lines]
            assert all(any(row[:1] == [each.name] for row in rows) for each in trouble)
            assert "left with exit code 1: ValueError" in text and "no messages now from gpu01" in text


def test_a_run_that_does_not_train_yet_shows_what_its_tasks_do() -> None:
    starting = [task(f"worker:{index}@h", "starting", doing="builds its graph") for index in range(2)]
    lines = drawn(status(*starting, state="starting"), 80, 24).splitlines()
    assert lines[:2] == ["r-1  starting", "builds its graph: worker:0, worker:1"]


def test_the_picture_has_a_bar_the_progress_and_the_formation() -> None:
    formed = FormationStatus(number=1, workers=3, of_workers=4, ps=2, of_ps=2, without=["gpu03"])
    lines = drawn(status(global_step=50, steps=100, formation=formed), 80, 24).splitlines()
    assert "━" * 30 in lines[1] and "step 50/100 (50 %)" in lines
    assert "formation 1: 3 of 4 workers, 2 of 2 ps; without gpu03" in lines


def watched(run: RunStatus, watch: Choices, width: int, height: int, log: Sequence[str] = ()) -> List[str]:
    """The lines of a picture that takes keys."""
    console = Console(file=io.StringIO(), width=width, height=height)
    console.print(Picture(run, height, watch=watch, log=log))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return [line.rstrip() for line in text.splitlines()]


def test_of_forty_tasks_the_one_that_was_restarted_is_first_while_the_run_goes_on_well() -> None:
    lines = drawn(healed(40), 80, 24).splitlines()
    head = next(place for place, line in enumerate(lines) if line.startswith("task "))
    assert lines[head + 1].startswith("worker:15 ") and lines[head + 2].startswith("ps:0 ")


def test_the_cause_of_a_run_that_has_failed_stands_below_the_picture_alone() -> None:
    assert "ValueError" not in drawn(failed(3), 200, 50)
