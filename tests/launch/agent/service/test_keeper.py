"""A keeper starts the agent of a detached run again, and no other; what ends a run in order ends both."""

import errno
import json
import os
import signal
import sys
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Callable, List, Mapping

import pytest

from launch.agent import leftovers
from launch.agent.linux.daemonize import fork_away
from launch.agent.linux.processes import Process, is_same
from launch.agent.service import keeper, keeping
from launch.agent.service.keeper import Pulse
from launch.agent.service.keeping import FAILED, OVER, TAKEN
from launch.agent.state import boot_unit, process_records
from launch.agent.state.run_folder import RunFolder
from tests.support.agent.agents import LEAD, MEMBER, Agents
from tests.support.launch.machine import living_under
from tests.support.waiting import eventually, let_pass

Run = Callable[..., Agents]
JOIN_S = 1.0
FOREVER = "echo attempt $LAUNCH_ATTEMPT $KEY; exec sleep 1000"


@pytest.fixture
def up(run: Run) -> Callable[..., Agents]:
    """Returns a run of two hosts that is up, and whose launcher has left, as after ``launch up -d``."""

    def begin(run_plan: Mapping[str, Any] = MappingProxyType({}), **changes: Any) -> Agents:
        agents = run(
            {"ps:0@localhost": FOREVER, "worker:0@localhost": FOREVER, "worker:1@127.0.0.1": FOREVER}, **changes
        )
        agents.requests[LEAD]["run_plan"].update(run_plan)
        agents.up()
        agents.tell({"do": "detach"})
        eventually("its leave, and a status on disk that knows every task", lambda: is_on_disk(agents))
        return agents

    return begin


def is_on_disk(agents: Agents) -> bool:
    """Whether the next lead would find that the launcher has left, and that every task runs."""
    tasks = (agents.folder().read("status.json") or {"tasks": []})["tasks"]
    ran = [task["state"] for task in tasks] == ["running"] * 3
    return ran and agents.folder().read("detached.json") is not None


def another(agents: Agents, host: str, before: int) -> int:
    """The pid of the agent that has taken the place of another."""
    return int(eventually(
        "the next agent", lambda: leftovers.agent_pid(agents.folder(host)) not in (None, before)
        and leftovers.agent_pid(agents.folder(host))
    ))  # fmt: skip


def pid_of(agents: Agents, host: str) -> int:
    pid = leftovers.agent_pid(agents.folder(host))
    assert pid is not None
    return pid


def shorten_join(own: Path) -> None:
    """Let hosts join within ``JOIN_S`` after a boot: the first start of a busy machine takes longer."""
    path = own / boot_unit.BOOT
    asked = json.loads(path.read_text())
    request = asked["request"]
    for part in (request, request["run_plan"] or {}):  # a member has no plan of the run
        part.update(join_s=JOIN_S, lost_after_s=JOIN_S)
    path.write_text(json.dumps(asked))


def trains_again(agents: Agents, attempts: List[int]) -> None:
    """Waits until the tasks run, each as the attempt with this number."""

    def found() -> List[Any]:
        return [(task["restarts"], task["state"]) for task in agents.status()["tasks"]]

    eventually(f"attempts {attempts}", lambda: found() == [(attempt, "running") for attempt in attempts], 20.0)


def test_a_lead_that_is_killed_under_a_detached_run_leads_on_and_needs_no_launcher(
    up: Callable[..., Agents], tmp_path: Path
) -> None:
    agents = up(detached=True, secrets={"KEY": "hidden"})
    killed = pid_of(agents, LEAD)
    agents.kill(LEAD)
    another(agents, LEAD, killed)
    trains_again(agents, [1, 1, 1])
    (incident,) = agents.status()["incidents"]
    assert (incident["kind"], incident["host"]) == ("agent", LEAD)
    assert agents.log("worker:0", 1) == "attempt 1 hidden\n"
    assert json.loads((agents.folder().own / "plan.json").read_text()).get("secrets") is None
    for host in (LEAD, MEMBER):
        assert agents.down(host)["processes"] == []
    assert not living_under(tmp_path) and agents.left() == []


def test_a_member_that_is_killed_under_a_detached_run_comes_back_in_place(
    up: Callable[..., Agents], tmp_path: Path
) -> None:
    agents = up(detached=True)
    killed = pid_of(agents, MEMBER)
    agents.kill(MEMBER)
    another(agents, MEMBER, killed)
    trains_again(agents, [0, 0, 1])
    for host in (LEAD, MEMBER):
        agents.down(host)
    assert not living_under(tmp_path)


def test_a_machine_that_goes_down_and_boots_goes_on_with_the_run_and_down_ends_that(
    up: Callable[..., Agents], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    systemctl = tmp_path / "systemctl"
    systemctl.write_text("#!/bin/sh\necho stopping\n")
    systemctl.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    agents = up(detached=True, returns=True, stay_s=100.0)
    agent, keeper = process_records.agent_of(agents.folder())
    os.kill(agent.pid, signal.SIGTERM)
    eventually("the end of agent and keeper", lambda: not is_same(keeper.pid, keeper.start))
    assert not agents.alive(LEAD) and is_on_disk(agents)
    agents.boot()
    trains_again(agents, [1, 1, 1])
    for host in (LEAD, MEMBER):
        assert agents.down(host)["locks"] == []
    assert not living_under(tmp_path) and not list((tmp_path / "home").rglob("launch-*"))


@pytest.mark.parametrize("first, second", [(LEAD, MEMBER), (MEMBER, LEAD)])
def test_hosts_that_lose_power_together_wait_for_each_other_whichever_boots_first(
    first: str, second: str, up: Callable[..., Agents], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    patient = {"patience": {MEMBER: 100.0}, "rejoin_s": 100.0}
    agents = up(patient, detached=True, returns=True, stay_s=100.0)
    for host in (LEAD, MEMBER):
        agents.kill(host, keeper=True)
        shorten_join(agents.folder(host).own)
    agents.boot(first)
    let_pass(2 * JOIN_S)  # which is what hosts have at a start
    agents.boot(second)
    trains_again(agents, [1, 1, 1])
    for host in (LEAD, MEMBER):
        agents.down(host)
    assert not living_under(tmp_path)


def test_down_leaves_nothing_that_a_boot_would_start(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    agents = run({"worker:0@localhost": FOREVER}, detached=True, returns=True)
    agents.up()
    agents.kill(LEAD, keeper=True)
    assert [Path(path).suffix for path in agents.look()["locks"]] == [".lock", ".sock", ".service", ".service", ".json"]
    assert agents.down()["locks"] == [] and not list((tmp_path / "home").rglob("launch-*"))


def test_down_kills_an_agent_that_is_frozen_and_no_keeper_starts_another(run: Run, tmp_path: Path) -> None:
    agents = run({"worker:0@localhost": FOREVER}, detached=True)
    agents.up()
    agent, keeper = process_records.agent_of(agents.folder())
    os.kill(agent.pid, signal.SIGSTOP)
    assert agents.down(timeout_s=0.5)["processes"] == []
    assert not is_same(keeper.pid, keeper.start) and not living_under(tmp_path)


def test_a_run_that_ends_by_itself_is_not_started_again(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    agents = run(
        {"worker:0@localhost": f"while test ! -e {tmp_path}/go; do sleep 0.05; done"}, detached=True, returns=True
    )
    agents.up()
    (tmp_path / "go").touch()
    assert agents.ended()["state"] == "succeeded"
    assert "again" not in (agents.folder().own / "agent.log").read_text()
    assert not list((tmp_path / "home").rglob("launch-*"))
    assert not living_under(tmp_path)


def kept(tmp_path: Path, *lives: Callable[[Pulse], int]) -> List[int]:
    """The exit code of a keeper, and how many lives its agent had; after the last of ``lives`` come more like it."""
    folder, record = RunFolder(tmp_path, "r-1", "h1"), tmp_path / "lives"
    folder.create()
    record.touch()

    def serve(_: Process, pulse: Pulse) -> int:
        number = record.stat().st_size
        with record.open("a") as file:
            file.write(".")
        return lives[min(number, len(lives) - 1)](pulse)

    service = keeper.Service(serve, serve, restarts=True, release=lambda: None, patience_s=20.0)

    def run() -> int:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # past pytest's own
        return keeper.keep(folder, service)

    pid = fork_away(run, tmp_path / "log", 2, "a keeper")
    return [os.WEXITSTATUS(os.waitpid(pid, 0)[1]), record.stat().st_size]


def killed(pulse: Pulse) -> int:
    pulse.write(100)
    os.kill(os.getpid(), signal.SIGKILL)
    return OVER


def refused(pulse: Pulse) -> int:
    return FAILED


def over(pulse: Pulse) -> int:
    return OVER


def test_an_agent_that_dies_again_and_again_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "FIRST_PAUSE_S", 0.001)
    assert kept(tmp_path, killed) == [FAILED, 6]
    assert "the agent ended 6 times within 600 s; not starting it again" in (tmp_path / "log").read_text()


def test_of_two_agents_of_a_run_that_begin_at_once_the_second_leaves_the_first_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "end", lambda folder: (folder.own / "ended").touch())
    monkeypatch.setattr(boot_unit, "remove", lambda folder: (folder.own / "ended").touch())
    assert kept(tmp_path, lambda pulse: TAKEN) == [TAKEN, 1]
    assert not list(tmp_path.rglob("ended"))


def test_a_next_agent_that_cannot_begin_yet_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "FIRST_PAUSE_S", 0.001)
    assert kept(tmp_path, killed, refused, refused, over) == [OVER, 4]


def test_a_fork_that_fails_is_tried_again_and_leaves_no_file_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fork, forks = os.fork, tmp_path / "forks"
    forks.touch()

    def without_memory() -> int:
        with forks.open("a") as file:
            file.write(f"{len(os.listdir('/proc/self/fd'))}\n")
        if 2 <= len(forks.read_text().splitlines()) <= 3:
            raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
        return fork()

    monkeypatch.setattr(keeping, "FIRST_PAUSE_S", 0.001)
    monkeypatch.setattr(keeper, "os", SimpleNamespace(**{**vars(os), "fork": without_memory}))
    assert kept(tmp_path, killed, over) == [OVER, 2]
    assert (tmp_path / "log").read_text().count("cannot start the agent: Cannot allocate memory") == 2
    assert len(set(forks.read_text().splitlines()[1:])) == 1
