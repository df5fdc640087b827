"""Status, logs and down: with the agent's help, and without it when it is dead."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

import pytest

from cluster.spec.model import Restart
from launch.agent import inquire
from launch.agent.processes import inspect
from tests.launch.agent.agents import LEAD, ROOT, RUN, Agents
from tests.launch.machine import eventually, living_under

Run = Callable[..., Agents]
FOREVER = "exec sleep 1000"
LISTENING = """exec {python} -c "import socket, time; s = socket.socket(); s.bind(('', {port})); s.listen(1)
print('up', flush=True); time.sleep(1000)" """


@pytest.fixture
def bystander() -> Iterator["subprocess.Popen[bytes]"]:
    """A stranger's process that looks just like a task's."""
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as process:
        yield process
        process.kill()


def state(pid: int) -> str:
    """A process's state, "gone" where there is none."""
    process = inspect(pid)
    return process.state if process else "gone"


def logs(agents: Agents, tasks: List[str], **options: Any) -> List[Dict[str, Any]]:
    told: List[Dict[str, Any]] = []
    inquire.logs(agents.request(tasks=tasks, **options), told.append)
    return told


def recorded(agents: Agents) -> List[Dict[str, Any]]:
    """The tasks as the lead's last record has them."""
    return (agents.folder().read("status.json") or {})["tasks"]  # type: ignore[no-any-return]


# -- nothing there


def test_where_nothing_ran_there_is_no_status_nothing_to_end_and_no_log(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    assert inquire.status(agents.request()) == {"status": None}
    assert agents.down() == {"run": None, "processes": [], "ports": [], "locks": []}
    assert logs(agents, ["worker:0"]) == [{"error": "no run of this name has been on this host"}]


def test_a_run_that_is_asked_for_by_its_own_name_is_not_replaced_by_another(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    other = agents.request(run="r-20261120-110000")
    assert inquire.status(other) == {"status": None}
    assert inquire.down(other)["run"] is None
    assert agents.status()["state"] == "running"


# -- a run that lives


def test_down_ends_a_run_and_says_that_nothing_is_left(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "", "worker:1@localhost": FOREVER})
    task = agents.requests[LEAD]["tasks"][0]
    task["argv"][2] = LISTENING.format(python=sys.executable, port=task["port"])
    agents.up()
    eventually("a server", lambda: agents.log("worker:0") == "up\n")
    before = inquire.look(agents.request())
    assert before["run"] == RUN and before["ports"] == [task["port"]]
    assert [process["argv"].split()[-1] for process in before["processes"]][2] == "1000"
    assert len(before["processes"]) == 3  # the agent and its two tasks
    assert agents.down() == {"run": RUN, "processes": [], "ports": [], "locks": []}
    assert (agents.ended()["state"], agents.ended()["cause"]) == ("stopped", "launch down")
    assert not living_under(tmp_path)


def test_down_after_down_finds_nothing_to_do(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    assert agents.down() == agents.down() == {"run": RUN, "processes": [], "ports": [], "locks": []}


def test_the_reason_of_a_down_is_the_cause_whatever_it_is_written_with(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    inquire.down(agents.request(reason='said "enough" — twice'))
    assert agents.ended()["cause"] == 'said "enough" — twice'


def test_an_agent_that_does_not_react_is_reported_as_left(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    pid = inquire.look(agents.request())["processes"][0]["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        left = inquire.down(agents.request(timeout_s=0.2))
    finally:
        os.kill(pid, signal.SIGCONT)
    assert pid in [process["pid"] for process in left["processes"]]
    assert left["locks"]


# -- a run whose agent was killed


def test_a_run_without_its_agent_has_failed_and_its_tasks_are_lost(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER, "worker:1@localhost": "exit 0"})
    agents.up()
    eventually("a record of its end", lambda: recorded(agents)[1]["state"] == "succeeded")
    agents.kill(LEAD)
    status = agents.ended()
    assert (status["state"], status["cause"]) == ("failed", "the lead's agent ended without a word")
    assert [task["state"] for task in status["tasks"]] == ["lost", "succeeded"]


def test_down_removes_what_a_killed_agent_left_and_nothing_else(
    run: Run, tmp_path: Path, bystander: "subprocess.Popen[bytes]"
) -> None:
    agents = run({"worker:0@localhost": "sleep 1000 & echo $!; wait"})
    agents.up()
    eventually("a child", lambda: agents.log("worker:0"))
    task, child = agents.task("worker:0")["pid"], int(agents.log("worker:0"))
    agents.kill(LEAD)
    agents.ended()
    eventually("the end of the task", lambda: state(task) in "Z gone")
    before = inquire.look(agents.request())
    assert [process["pid"] for process in before["processes"]] == [child]  # it has lost parent and agent
    assert len(before["locks"]) == 2  # a lock and a socket
    assert agents.down() == {"run": RUN, "processes": [], "ports": [], "locks": []}
    assert agents.left() == []
    assert state(bystander.pid) == "S"


def test_a_group_that_got_the_number_of_an_old_task_is_not_taken_for_it(
    run: Run, bystander: "subprocess.Popen[bytes]"
) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    agents.kill(LEAD)
    agents.ended()
    agents.folder().write("processes.json", {"leaders": [bystander.pid]})
    assert agents.down()["processes"] == []
    assert state(bystander.pid) == "S"


def test_a_dead_run_is_cleared_without_touching_the_next_one_of_its_name(run: Run) -> None:
    first = run({"worker:0@localhost": FOREVER})
    first.up()
    first.kill(LEAD)
    first.ended()
    answer = first.start(run="r-20261120-130000", tasks=[])
    assert answer.get("ready"), answer
    assert inquire.down(first.request(run=RUN))["locks"] == []
    assert inquire.status(first.request())["agent"] and first.status()["state"] == "starting"


# -- logs


def test_logs_have_every_line_of_every_attempt_with_its_task(run: Run) -> None:
    script = "echo one $LAUNCH_ATTEMPT; printf 'no newline'; exit 3"
    agents = run({"worker:0@localhost": script, "worker:1@localhost": "echo other; sleep 1000"}, Restart(1, 0.01))
    agents.start()
    agents.tell({"do": "go"})
    agents.ended()
    assert [(line["attempt"], line["line"]) for line in logs(agents, ["worker:0"])] == [
        (0, "one 0"), (0, "no newline"), (1, "one 1"), (1, "no newline"),
    ]  # fmt: skip
    assert [line["task"] for line in logs(agents, ["worker:0", "worker:1"])] == ["worker:0"] * 4 + ["worker:1"]


def test_of_a_long_log_only_the_tail_is_told_where_that_is_asked_for(run: Run) -> None:
    agents = run({"worker:0@localhost": "seq 1 1000; exit 3"})
    agents.start()
    agents.tell({"do": "go"})
    agents.ended()
    assert [line["line"] for line in logs(agents, ["worker:0"], tail=2)] == ["999", "1000"]


def test_a_log_that_is_followed_grows_until_the_run_is_over(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": f"echo one; while test ! -e {tmp_path}/go; do sleep 0.05; done; printf two"})
    agents.up()
    told = []

    def tell(values: Dict[str, Any]) -> None:
        told.append(values["line"])
        (tmp_path / "go").touch()  # the task goes on only when its first line was told

    inquire.logs(agents.request(tasks=["worker:0"], follow=True), tell)
    assert told == ["one", "two"]


def test_who_follows_a_silent_log_and_goes_leaves_no_process_behind(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    follower = subprocess.Popen(
        [sys.executable, "-m", "launch.agent", "logs"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        cwd=str(tmp_path), env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    with follower:
        request = agents.request(tasks=["worker:0"], follow=True)
        follower.stdin.write(json.dumps(request).encode() + b"\n")  # type: ignore[union-attr]
        follower.stdin.close()  # type: ignore[union-attr]
        try:
            assert follower.wait(20) == 0
        finally:
            follower.kill()
    assert agents.status()["state"] == "running"
