"""The keys of ``launch status --watch``: what they choose, how they are read, and that the terminal is restored."""

import io
import os
import pty
import termios
from queue import Queue
from typing import Any, List

import pytest
from rich.console import Console

from launch.status.task import TaskStatus
from launch.view.keyboard import WatchView, keys_of
from launch.view.watch_keys import HELP, SORTS, Choices
from tests.launch.view.captures import healed
from tests.launch.view.test_picture import watched
from tests.support.launch.statuses import status, task
from tests.support.waiting import PATIENCE_S

TASKS = [
    task("ps:0@cpu01"),
    task("worker:0@gpu01", step_time_ms=30.0),
    task("worker:1@gpu02", step_time_ms=45.0, restarts=1),
    task("worker:10@gpu02", "restarting", step_time_ms=20.0, restarts=2),
]


def after(*keys: str) -> Choices:
    """The state after keys, each character of a text being one."""
    watch = Choices()
    for key in keys:
        watch = watch.pressed(key)
    return watch


def names(tasks: List[TaskStatus]) -> List[str]:
    return [each.name for each in tasks]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", ["ps:0", "worker:0", "worker:1", "worker:10"]),
        ("s", ["worker:1", "worker:0", "worker:10", "ps:0"]),
        ("ss", ["worker:10", "worker:1", "ps:0", "worker:0"]),
        ("sss", ["ps:0", "worker:0", "worker:1", "worker:10"]),
        ("s" * len(SORTS), ["ps:0", "worker:0", "worker:1", "worker:10"]),
        ("/gpu02\r", ["worker:1", "worker:10"]),
        ("/gpu02", ["worker:1", "worker:10"]),  # as it is typed
        ("/gpx\x7fu01\n", ["worker:0"]),
        ("/gpu02\x1b", ["ps:0", "worker:0", "worker:1", "worker:10"]),
        ("/gpu02\r\x1b", ["ps:0", "worker:0", "worker:1", "worker:10"]),
        ("/restart\rs", ["worker:10"]),
        ("x\x1b[A9", ["ps:0", "worker:0", "worker:1", "worker:10"]),  # keys without a meaning
    ],
)
def test_keys_sort_and_filter_the_tasks(keys: str, expected: List[str]) -> None:
    assert names(after(*keys).arranged(TASKS)) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [("lworker:1\r", "worker:1"), ("l\r", "ps:0"), ("/gpu02\rl\r", "worker:1"), ("lgpu01\r", "worker:0"),
     ("lps:7\r", None), ("lps\x1b", None), ("l\r\x1b", None), ("l", None)],
)  # fmt: skip
def test_l_shows_the_log_of_the_named_task_or_of_the_first(keys: str, expected: Any) -> None:
    found = after(*keys).task_of_log(TASKS)
    assert (found and found.name) == expected


def test_p_pauses_and_q_ends_and_a_question_mark_explains() -> None:
    assert after("p").paused and not after("p", "p").paused
    assert after("q").ends and not after("/", "q").ends
    assert after("?").helps and not after("?", "\x1b").helps and not after("?", "?").helps
    assert after("p").foot.startswith("PAUSED  ") and after(*"/gpu").foot == "filter: gpu_   Enter  Esc"


def test_a_typed_text_has_a_bound() -> None:
    assert len(after("/", *"x" * 1000).typed) == 60


def test_a_sort_that_the_viewer_chose_decides_which_tasks_have_a_row() -> None:
    run = healed(40)
    rows = watched(run, after("s"), 80, 24)
    assert rows[-1].startswith("s sort: ms/step  / filter  l log")
    assert len(rows) <= 23 and max(map(len, rows)) <= 80
    assert not any(line.startswith("worker:15 ") for line in rows)  # which was restarted


def test_help_and_a_log_take_the_place_of_the_table() -> None:
    run = status(*TASKS)
    assert [line for line in watched(run, after("?"), 100, 24) if line in HELP] == list(HELP)
    lines = watched(run, after(*"l\r"), 80, 24, [f"line {number} {'x' * 100}" for number in range(50)])
    assert "line 49" in lines[-2] and "…" in lines[-2] and len(lines) <= 23
    assert not any("state" in line for line in lines)


def test_each_key_is_handed_over_and_the_terminal_is_as_before_whatever_happens() -> None:
    master, slave = pty.openpty()
    before, pressed = termios.tcgetattr(slave), Queue()  # type: ignore[var-annotated]
    with open(slave, "rb", buffering=0) as terminal:
        with pytest.raises(ZeroDivisionError), keys_of(terminal, pressed.put):  # type: ignore[arg-type]
            assert not termios.tcgetattr(slave)[3] & (termios.ICANON | termios.ECHO)
            os.write(master, b"s\x1b[A/\x1b")
            assert [pressed.get(timeout=PATIENCE_S) for _ in range(4)] == ["s", "\x1b[A", "/", "\x1b"]
            raise ZeroDivisionError
        assert termios.tcgetattr(slave) == before
    os.close(master)


def test_a_log_is_fetched_for_the_task_that_was_first_when_it_was_asked_for_and_now_and_then() -> None:
    view, fetched = WatchView(), []

    def fetch(task: TaskStatus, most: int) -> List[str]:
        fetched.append(task.name)
        return ["line"]

    view.attend(fetch)
    view.show(status(*TASKS))
    view.attend(fetch)
    for key in "l\r":
        view.press(key)
    view.attend(fetch)
    view.show(status(*reversed(TASKS)))
    view.attend(fetch)
    assert fetched == ["ps:0"] and view.watch.log == "ps:0"
    for key in "lworker:1\rp":
        view.press(key)
    view.attend(fetch)
    assert fetched == ["ps:0"]  # paused
    view.press("p")
    view.attend(fetch)
    assert fetched == ["ps:0", "worker:1"]


def test_a_paused_view_keeps_its_picture() -> None:
    view = WatchView()
    view.show(status(*TASKS))
    view.press("p")
    view.show(status(*TASKS[:1]))
    view.press("x")
    assert len(view._status.tasks) == 4  # type: ignore[union-attr]


def test_the_picture_that_stays_on_the_screen_is_the_newest_and_takes_no_keys() -> None:
    view = WatchView()
    view.show(status(*TASKS))
    view.press("p")
    view.show(status(*TASKS, state="succeeded"))
    view.__exit__()
    console = Console(file=io.StringIO(), width=80)
    console.print(view._live.renderable)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.startswith("r-1  succeeded") and "quit" not in text
