"""What thousands of tasks cost: told by the lines of Python that run, whose number no busy machine changes."""

import sys
import threading
from types import FrameType
from typing import Any, Callable, Dict

import pytest

from launch import calls
from launch.agent.supervision.run_state import RunState
from tests.benchmarks import scale


def lines_of(tasks: int) -> Dict[str, int]:
    """How many lines each stage of the benchmark runs for so many tasks; those of a loop once a turn."""
    found: Dict[str, int] = {}

    def counted(name: str, run: Callable[[], Any]) -> Any:
        def note(frame: FrameType, event: str, argument: Any) -> Any:
            found[name] = found.get(name, 0) + (event == "line")
            return note

        before = sys.gettrace()
        threading.settrace(note)
        sys.settrace(note)
        try:
            return run()
        finally:
            sys.settrace(before)
            threading.settrace(None)  # type: ignore[arg-type]

    scale.main(tasks, counted)
    return found


@pytest.mark.not_fast
def test_four_times_the_tasks_run_hardly_more_than_four_times_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "LOOK_S", 60.0)  # one look at all hosts, however long a busy machine takes for them
    lines_of(20)  # what is imported and made once
    few, many = lines_of(60), lines_of(240)
    # On a busy machine threads look for each other more often: 4.6 was seen. What grows by the square has 16.
    assert {name: many[name] / few[name] for name in few if many[name] > 6 * few[name]} == {}


def test_the_benchmark_fails_if_a_stage_does_not_do_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RunState, "label", "failed")
    with pytest.raises(RuntimeError, match="failed"):
        scale.main(20, lambda name, run: run())
