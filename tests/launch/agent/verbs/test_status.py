"""What a host knows of a run: with its agent's help, and without it when it is dead."""

import os
import signal
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from launch.agent.protocol import local_socket
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder
from launch.agent.verbs import status as inquire
from launch.agent.wire.verb_requests import RunReference
from tests.support.agent.agents import LEAD, MEMBER, Agents
from tests.support.waiting import eventually

Run = Callable[..., Agents]
FOREVER = "exec sleep 1000"


def gone(status: Dict[str, Any]) -> str:
    """The cause of a run whose lead's agent is gone; the time in it is the one that it names."""
    since = status["cause"][len("the agent on localhost ended after ") :][: len("2026-11-20T12:00:00+00:00")]
    return f"the agent on localhost ended after {since}, and the run with it; {inquire.ADVICE.format(file='r.yaml')}"


def recorded(agents: Agents) -> List[Dict[str, Any]]:
    """The tasks as the lead's last record has them."""
    return (agents.folder().read("status.json") or {})["tasks"]  # type: ignore[no-any-return]


def test_where_nothing_ran_there_is_no_status(run: Run) -> None:
    assert inquire.status(run({"worker:0@localhost": FOREVER}).reference()) == {"status": None}


def test_a_run_that_is_asked_for_by_its_own_name_is_not_replaced_by_another(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    other = "r-20261120-110000"
    assert inquire.status(agents.reference(run=other)) == {"status": None}
    assert agents.down(run=other)["run"] is None
    assert agents.status()["state"] == "running"


def test_a_run_without_its_agent_has_failed_and_its_tasks_are_lost(run: Run) -> None:
    agents = run({"worker:0@localhost": FOREVER, "worker:1@localhost": "exit 0"})
    agents.up()
    eventually("a record of its end", lambda: recorded(agents)[1]["state"] == "succeeded")
    agents.kill(LEAD)
    status = agents.ended()
    assert (status["state"], status["cause"]) == ("failed", gone(status))
    assert [task["state"] for task in status["tasks"]] == ["lost", "succeeded"]


def test_a_run_goes_on_whose_lead_is_stopped_and_has_nobody_to_kill_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by a simulated history: its agent "ended", and ``launch up`` with it, while the agent was there."""
    agents = run({"worker:0@localhost": FOREVER})
    agents.up()
    eventually("a record of its start", lambda: recorded(agents)[0]["state"] == "running")
    serving = process_records.agent_of(agents.folder())
    monkeypatch.setattr(local_socket.ask_agent, "__defaults__", (0.2,))
    for process in serving:
        os.kill(process.pid, signal.SIGSTOP)
    found = inquire.status(agents.reference())
    for process in serving:
        os.kill(process.pid, signal.SIGCONT)
    assert (found["agent"], found["died"]) == (False, False)
    assert (found["status"]["state"], found["status"]["silent"]) == ("running", [LEAD])
    assert found["status"]["tasks"][0]["state"] == "running"


# -- a run that is just starting


def starting(workdir: Path, **plan: Any) -> RunFolder:
    """A run's folder before its agent has written a status."""
    folder = RunFolder(workdir, "r-20261120-120000", LEAD)
    folder.create()
    folder.write("plan.json", plan)
    return folder


def test_a_run_that_is_just_starting_is_there_once_its_agent_has_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = starting(tmp_path, lead={"host": LEAD})
    monkeypatch.setattr(time, "sleep", lambda _: folder.write("status.json", {"state": "succeeded"}))
    assert inquire.status(RunReference("r", LEAD, str(tmp_path)))["status"] == {"state": "succeeded"}


def test_a_start_that_never_gets_a_status_is_not_waited_for_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting(tmp_path, lead={"host": LEAD})
    monkeypatch.setattr(inquire, "STARTS_S", 0.1)
    assert inquire.status(RunReference("r", LEAD, str(tmp_path)))["status"] is None


def test_a_status_that_a_power_cut_has_left_in_pieces_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (starting(tmp_path, lead={"host": LEAD}).own / "status.json").write_text("")
    monkeypatch.setattr(inquire, "STARTS_S", 0.1)
    assert inquire.status(RunReference("r", LEAD, str(tmp_path)))["status"] is None


def test_a_member_is_not_waited_for_as_only_the_lead_has_a_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starting(tmp_path, lead={"host": MEMBER})
    monkeypatch.setattr(inquire, "STARTS_S", 1e9)
    assert inquire.status(RunReference("r", LEAD, str(tmp_path)))["status"] is None


def test_what_a_member_has_recorded_of_its_own_tasks_is_told_as_it_is(tmp_path: Path) -> None:
    recorded_by_it = {"run": "r-20261120-120000", "tasks": {"worker:1": {"pid": 7, "alive": True}}}
    starting(tmp_path, lead={"host": MEMBER}).write("status.json", recorded_by_it)
    answer = inquire.status(RunReference("r", LEAD, str(tmp_path)))
    assert answer["status"] == recorded_by_it


def test_a_status_of_another_version_is_told_with_every_field(tmp_path: Path) -> None:
    task = {"role": "worker", "index": 0, "state": "running", "of_yesterday": 1}
    folder = starting(tmp_path, lead={"host": LEAD})
    folder.write("status.json", {"run": folder.run, "state": "running", "tasks": [task]})
    status = inquire.status(RunReference("r", LEAD, str(tmp_path)))["status"]
    assert (status["state"], status["tasks"][0]["state"], status["tasks"][0]["restarts"]) == ("failed", "lost", 0)
