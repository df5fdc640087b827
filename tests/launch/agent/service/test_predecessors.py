"""What earlier runs of a name left on a host is ended before another begins: never two generations side by side."""

import os
import signal
import subprocess
from pathlib import Path
from typing import Callable

import pytest

from launch.agent import leftovers
from launch.agent.state import locks, process_records
from launch.agent.state.run_folder import lock_path
from tests.launch.agent.verbs.test_down import state
from tests.support.agent.agents import LEAD, RUN, Agents
from tests.support.waiting import eventually

Run = Callable[..., Agents]
NEXT = "r-20261121-120000"
LEAVES_A_CHILD = "sleep 1000 & echo $!; wait"


def child_of(agents: Agents) -> int:
    """The pid of the process that the run's task has started."""
    eventually(
        "a child on record", lambda: agents.log("worker:0") and len(process_records.tasks_of(agents.folder())) == 2
    )
    return int(agents.log("worker:0"))


def test_what_is_left_where_agent_and_keeper_were_killed_is_ended_before_the_next_run_begins(
    run: Run, bystander: "subprocess.Popen[bytes]"
) -> None:
    agents = run({"worker:0@localhost": LEAVES_A_CHILD})
    agents.up()
    child = child_of(agents)
    agents.kill(LEAD, keeper=True)
    agents.ended()
    eventually("what is left", lambda: [each.pid for each in process_records.tasks_of(agents.folder())] == [child])
    answer = agents.start(LEAD, run=NEXT)
    assert answer["ready"] and answer["ended"] == [f"ended leftovers of {RUN}: processes {child}"]
    assert state(child) in "Z gone" and bystander.poll() is None
    assert agents.down()["run"] == NEXT


def test_an_agent_begins_beside_no_process_that_the_one_before_has_left(run: Run) -> None:
    """It would be one that hangs in the kernel: a second process of its task must not start."""
    agents = run({"worker:0@localhost": "exec sleep 1000"})
    agents.up()
    pid = agents.status()["tasks"][0]["pid"]
    with pytest.raises(locks.NameTaken, match=rf"processes of {RUN} cannot be ended \(pids {pid}\): restart this host"):
        leftovers.end_earlier_runs(agents.folder(), "r", "hosts.yaml")
    assert agents.down()["run"] == RUN


def test_a_run_that_lives_is_not_begun_again_though_somebody_has_removed_its_lock(run: Run) -> None:
    agents = run({"worker:0@localhost": "exec sleep 1000"})
    agents.up()
    lock_path(agents.workdir, "r", LEAD).unlink()
    assert agents.start(LEAD, run=NEXT)["error"].startswith(f"{RUN} is already up")
    assert agents.status()["state"] == "running"
    assert agents.down()["run"] == RUN


def test_a_detached_run_whose_keeper_is_about_to_start_its_agent_lives(run: Run) -> None:
    agents = run({"worker:0@localhost": "exec sleep 1000"}, detached=True)
    agents.up()
    agents.tell({"do": "detach"})
    eventually("its launcher's leave", lambda: agents.folder().read("detached.json") is not None)
    agent, keeper = process_records.agent_of(agents.folder())
    os.kill(keeper.pid, signal.SIGSTOP)
    os.kill(agent.pid, signal.SIGKILL)
    eventually("a free lock", lambda: not agents.alive(LEAD))
    assert agents.start(LEAD, run=NEXT)["error"].startswith(f"{RUN} is already up")
    os.kill(keeper.pid, signal.SIGCONT)
    eventually("the next agent", lambda: agents.alive(LEAD))
    assert agents.down()["run"] == RUN


def test_what_would_start_an_earlier_run_at_a_boot_goes_when_the_next_run_begins(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    agents = run({"worker:0@localhost": "exec sleep 1000"}, detached=True, returns=True)
    agents.up()
    agents.kill(LEAD, keeper=True)
    eventually("the end of its task", lambda: not process_records.tasks_of(agents.folder()))
    agents.start(LEAD, run=NEXT, returns=False)
    assert not list((tmp_path / "home").rglob("launch-*"))
    agents.down()


def test_a_run_after_one_that_left_nothing_has_nothing_to_tell_of(run: Run) -> None:
    agents = run({"worker:0@localhost": "exec sleep 1000"})
    agents.up()
    agents.down()
    assert agents.start(LEAD, run=NEXT)["ended"] == []
    agents.down()
