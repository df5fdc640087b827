"""``launch report`` prints a page of the newest run, with the lines of its logs."""

from launch.timeline.drawing import NONE
from tests.launch.page.test_document import values_in
from tests.support.launch.launcher import Launcher


def test_a_run_that_ended_is_one_page_with_its_tasks_and_lines(launch: Launcher) -> None:
    launch.write("echo '</script><b>line'; exit 0")
    assert launch("up").returncode == 0
    ended = launch("report", "worker:1")
    assert ended.returncode == 0, ended.stderr
    values = values_in(ended.stdout)
    assert values["facts"]["state"] == "succeeded"
    assert [task["name"] for task in values["facts"]["tasks"]] == ["ps:0", "worker:0", "worker:1"]
    assert values["logs"]["lines"] == ["worker:1@localhost </script><b>line"]
    assert values["steps"]["lines"] == [f"no task has recorded a step; {NONE}"]
    assert "left out: the logs of 2 more tasks" in ended.stderr


def test_a_name_without_runs_is_an_error_with_the_next_step(launch: Launcher) -> None:
    launch.write()
    ended = launch("report")
    assert ended.returncode == 2 and ended.stdout == ""
    assert "start one with `launch up" in ended.stderr
