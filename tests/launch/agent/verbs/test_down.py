"""The end of a run from outside: with the agent's help, against its will, and when it is dead."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from launch.agent import leftovers
from launch.agent.linux import processes
from launch.agent.linux.processes import command_line, inspect
from launch.agent.state import process_records
from launch.agent.verbs import down, status
from launch.agent.wire.verb_requests import DownRequest
from tests.support.agent.agents import LEAD, RUN, Agents
from tests.support.launch.leftovers import NOTHING
from tests.support.launch.machine import living_under
from tests.support.waiting import eventually

Run = Callable[..., Agents]
FOREVER = "exec sleep 1000"
GONE: Dict[str, Any] = {"run": RUN, **NOTHING}
ENDED: Dict[str, Any] = {**GONE, "after": None}
LISTENING = """exec {python} -c "import socket, time; s = socket.socket(); s.bind(('', {port})); s.listen(1)
print('up', flush=True); time.sleep(1000)" """


def state(pid: int) -> str:
    """A process's state, "gone" where there is none."""
    process = inspect(pid)
    return process.state if process else "gone"


def apart(agents: Agents) -> List[str]:
    """The command lines of children that have a session of their own."""
    found = [each for each in living_under(agents.workdir) if each.session == each.pid]
    return [line for line in (command_line(each.pid) for each in found) if line == "sleep 1000"]


def test_where_nothing_ran_there_is_nothing_to_end(run: Run) -> None:
    assert run({"worker:0@localhost": FOREVER}).down() == {**ENDED, "run": None}


# -- a run that lives


def test_down_ends_a_run_and_says_that_nothing_is_left(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "", "worker:1@localhost": FOREVER})
    task = agents.requests[LEAD]["tasks"][0]
    task["argv"][2] = LISTENING.format(python=sys.executable, port=task["port"])
    agents.up()
    eventually("a server", lambda: agents.log("worker:0") == "up\n")
    before = agents.look()
    assert before["run"] == RUN and before["ports"] == [task["port"]]
    agent, keeper, *tasks = before["processes"]
    assert {process["pid"] for process in tasks} == {task["pid"] for task in agents.status()["tasks"]}
    assert all(inspect(process["pid"]).start == process["start"] for process in before["processes"])  # type: ignore
    assert tasks[1]["argv"] == "sleep 1000" and tasks[1]["group"] == tasks[1]["pid"]
    assert agent["group"] == keeper["group"] == keeper["pid"]
    assert agents.down() == ENDED
    assert (agents.ended()["state"], agents.ended()["cause"]) == ("stopped", "launch down")
    assert not living_under(tmp_path)


def test_down_after_down_finds_nothing_to_do(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    assert agents.down() == agents.down() == ENDED


def test_the_reason_of_a_down_is_the_cause_whatever_it_is_written_with(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    agents.down(reason='said "enough" — twice')
    assert agents.ended()["cause"] == 'said "enough" — twice'


def test_an_agent_that_does_not_react_is_killed_and_its_tasks_with_it(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "sleep 1000 & wait"})
    agents.up()
    os.kill(agents.look()["processes"][0]["pid"], signal.SIGSTOP)
    assert agents.down(timeout_s=0.2) == ENDED
    assert agents.left() == [] and not living_under(tmp_path)


@contextmanager
def frozen(agents: Agents) -> Iterator[List[Dict[str, Any]]]:
    """An agent and its keeper that react to nothing, as ``look`` has them; at last the agent is killed."""
    agent, keeper = serving = agents.look()["processes"][:2]
    for each in (keeper, agent):
        os.kill(each["pid"], signal.SIGSTOP)
    try:
        yield serving
    finally:
        os.kill(agent["pid"], signal.SIGKILL)
        os.kill(keeper["pid"], signal.SIGCONT)
        eventually("the end of the keeper", lambda: inspect(keeper["pid"]) is None)


def test_an_agent_that_outlives_sigkill_is_reported_as_left(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    monkeypatch.setattr(leftovers, "GONE_S", 0.1)
    monkeypatch.setattr(processes, "signal_process", lambda pid, start, number: None)  # as if it hung in the kernel
    with frozen(agents) as serving:
        assert agents.down(timeout_s=0.2)["processes"][:2] == serving


def test_an_agent_without_its_record_is_reported_as_left_since_it_holds_the_name_of_the_run(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    monkeypatch.setattr(leftovers, "GONE_S", 0.1)
    with frozen(agents) as serving:
        (agents.folder().own / process_records.AGENT).unlink()
        left = agents.down(timeout_s=0.2)
    assert (left["processes"], len(left["locks"])) == (serving[:1], 2)


# -- a run whose agent was killed


def test_an_agent_that_is_killed_leaves_nothing_since_its_keeper_ends_what_it_left(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": "setsid sleep 1000 & sleep 1000 & wait"})
    agents.up()
    eventually("children on record", lambda: len(process_records.tasks_of(agents.folder())) == 3)
    agents.kill(LEAD)
    eventually("the end of the keeper", lambda: not process_records.agent_of(agents.folder()))
    assert agents.look() == GONE
    assert agents.left() == [] and not living_under(tmp_path)
    log = (agents.folder().own / "agent.log").read_text()
    assert "the agent was killed by SIGKILL; ending the processes that it left" in log


def test_a_keeper_ends_a_child_that_left_its_session_before_anybody_noted_it(run: Run, tmp_path: Path) -> None:
    go = tmp_path / "go"
    agents = run({"worker:0@localhost": f"until [ -e {go} ]; do sleep 0.05; done; setsid sleep 1000 & wait"})
    agents.up()
    os.kill(process_records.agent_of(agents.folder())[0].pid, signal.SIGSTOP)  # it notes nothing any more
    go.touch()
    eventually("a child of no recorded session", lambda: apart(agents))
    agents.kill(LEAD)
    eventually("the end of the keeper", lambda: not process_records.agent_of(agents.folder()))
    assert not living_under(tmp_path)


def test_down_ends_a_child_that_left_its_session_while_agent_and_keeper_stood_still(run: Run, tmp_path: Path) -> None:
    go = tmp_path / "go"
    agents = run({"worker:0@localhost": f"until [ -e {go} ]; do sleep 0.05; done; setsid sleep 1000 & wait"})
    agents.up()
    agent, keeper = process_records.agent_of(agents.folder())
    for each in (keeper, agent):
        os.kill(each.pid, signal.SIGSTOP)
    go.touch()
    eventually("a child of no recorded session", lambda: apart(agents))
    assert agents.down(timeout_s=0.2) == ENDED
    assert not living_under(tmp_path)


def test_down_removes_what_agent_and_keeper_left_when_both_were_killed_and_nothing_else(
    run: Run, bystander: "subprocess.Popen[bytes]"
) -> None:
    agents = run({"worker:0@localhost": "sleep 1000 & echo $!; wait"})
    agents.up()
    eventually("a child", lambda: agents.log("worker:0"))
    task, child = agents.task("worker:0")["pid"], int(agents.log("worker:0"))
    agents.kill(LEAD, keeper=True)
    agents.ended()
    eventually("the end of the task", lambda: state(task) in "Z gone")
    before = agents.look()
    assert [process["pid"] for process in before["processes"]] == [child]  # it has lost parent and agent
    assert len(before["locks"]) == 2  # a lock and a socket
    assert agents.down() == ENDED
    assert agents.left() == []
    assert state(bystander.pid) == "S"


def dead(run: Run) -> Agents:
    """A run of which agent and keeper were killed, and the task with them."""
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    agents.kill(LEAD, keeper=True)
    agents.ended()
    return agents


@pytest.mark.parametrize("damage", ["", '{"state": "run', '{"state": "running", "training_metrics": {"auc": []}}'])
def test_down_records_the_end_of_a_run_whose_lead_was_dead_so_that_no_launcher_starts_it_again(
    run: Run, damage: str
) -> None:
    agents = dead(run)
    if damage:
        (agents.folder().own / "status.json").write_text(damage)
    assert inquire(agents)["died"]
    assert agents.down() == ENDED
    ended = inquire(agents)
    assert (ended["died"], ended["status"]["state"], ended["status"]["cause"]) == (False, "stopped", "launch down")
    assert [task["state"] for task in ended["status"]["tasks"]] == ([] if damage else ["lost"])
    assert agents.start(again=True) == {"error": f"expected a run that has not ended, but {RUN} has ended"}


@pytest.mark.parametrize("known, cause", [(None, "its lead died"), ("SIGINT to launch up", "SIGINT to launch up")])
def test_the_end_of_a_run_whose_lead_was_dead_is_recorded_as_its_launcher_has_shown_it(
    run: Run, known: Optional[str], cause: str
) -> None:
    """Found by a seed: the state of a run that was about to end stayed, and any other run became a stopped one."""
    agents = dead(run)
    agents.folder().write("status.json", {**(agents.folder().read_whole("status.json") or {}), "cause": known})
    down.down(DownRequest(agents.reference(), 20.0, "its lead died", state="failed"))
    recorded = agents.folder().read_whole("status.json") or {}
    assert (recorded["state"], recorded["cause"]) == ("failed", cause)


def inquire(agents: Agents) -> Dict[str, Any]:
    """The answer of the verb ``status``, by which a launcher decides whether to start a lead again."""
    return status.status(agents.reference())


def record(agents: Agents, boot: str, pid: int, start: int) -> None:
    """The agent has put down this process for one of its tasks."""
    named = {"pid": pid, "start": start}
    agents.folder().write(process_records.TASKS, {"boot": boot, "leaders": [named], "others": [named]})


def test_a_process_that_got_the_number_of_an_old_task_is_not_taken_for_it(
    run: Run, bystander: "subprocess.Popen[bytes]"
) -> None:
    agents, seen = dead(run), inspect(bystander.pid)
    assert seen is not None
    record(agents, process_records.boot(), seen.pid, seen.start - 1)
    assert agents.down()["processes"] == []
    assert state(bystander.pid) == "S"


def test_a_record_from_before_the_machine_booted_names_nobody(run: Run, bystander: "subprocess.Popen[bytes]") -> None:
    agents, seen = dead(run), inspect(bystander.pid)
    assert seen is not None
    record(agents, "another", seen.pid, seen.start)
    assert agents.down()["processes"] == []
    assert state(bystander.pid) == "S"


def test_a_dead_run_is_cleared_without_touching_the_next_one_of_its_name(run: Run) -> None:
    first = dead(run)
    answer = first.start(run="r-20261120-130000", tasks=[])
    assert answer.get("ready"), answer
    assert first.down(run=RUN)["locks"] == []
    assert status.status(first.reference())["agent"] and first.status()["state"] == "starting"
