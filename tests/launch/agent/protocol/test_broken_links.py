"""A link that breaks and is made anew loses nothing; one that stays silent ends the run on both sides."""

from pathlib import Path
from typing import Any, Callable, Iterator, Tuple

import pytest

from cluster.protocol.settings import Restart
from launch.agent.linux.processes import inspect
from launch.agent.protocol import local_socket
from tests.launch.agent.protocol.cable import Cable
from tests.support.agent.agents import LEAD, MEMBER, Agents
from tests.support.launch.machine import living_under
from tests.support.waiting import eventually

Linked = Callable[..., Tuple[Agents, Cable]]
UNTIL = "while test ! -e {}; do sleep 0.05; done; {}"
FOREVER = "exec sleep 1000"


@pytest.fixture
def linked(tmp_path: Path) -> Iterator[Linked]:
    """``linked(script of worker:0, script of worker:1)``: a run on two hosts, up, with the cable between them."""
    made: Any = []

    def make(chief: str, other: str, restart: Restart, **changes: Any) -> Tuple[Agents, Cable]:
        scripts = {"worker:0@localhost": chief, "worker:1@127.0.0.1": other}
        agents = Agents(tmp_path / "w", scripts, restart, **changes)
        cable = Cable(int(agents.requests[LEAD]["lead"]["address"].rsplit(":", 1)[1]))
        made.extend([agents.end, cable.close])
        agents.requests[MEMBER]["lead"] = {"host": LEAD, "address": f"127.0.0.1:{cable.port}"}
        agents.up()
        return agents, cable

    yield make
    for end in made:
        end()


def mend(cable: Cable) -> None:
    """What is lost is lost; from now on everything is passed on, over a new connection."""
    cable.cut()
    cable.lossy = cable.out = False


def member_runs(agents: Agents) -> bool:
    """Whether the member has a living process of its task, as it says itself."""
    status = local_socket.ask_agent(agents.folder(MEMBER).own, {"do": "status"})
    return bool(status["tasks"]["worker:1"]["alive"])


def test_an_exit_that_was_lost_on_the_way_is_told_again(linked: Linked, tmp_path: Path) -> None:
    wait = [UNTIL.format(tmp_path / name, "exit 0") for name in ("chief", "other")]
    agents, cable = linked(*wait, Restart(0, 0.0))
    cable.lossy = True
    (tmp_path / "other").touch()
    eventually("the end of worker:1", lambda: not member_runs(agents))
    mend(cable)
    eventually("the news of it", lambda: agents.task("worker:1")["state"] == "succeeded")
    (tmp_path / "chief").touch()
    assert agents.ended()["state"] == "succeeded"


def test_an_order_that_was_lost_on_the_way_is_given_again(linked: Linked, tmp_path: Path) -> None:
    agents, cable = linked(FOREVER, FOREVER, Restart(0, 0.0))
    cable.lossy = True
    agents.tell({"do": "stop", "reason": "enough"})
    eventually("the end of worker:0", lambda: agents.task("worker:0")["state"] == "stopped")
    assert member_runs(agents)
    mend(cable)
    status = agents.ended()
    assert (status["state"], [task["exit_code"] for task in status["tasks"]]) == ("stopped", [-15, -15])


def test_a_restart_that_was_ordered_without_a_link_happens_when_there_is_one(linked: Linked, tmp_path: Path) -> None:
    fails_once = "test $LAUNCH_ATTEMPT = 1 && exit 0; " + UNTIL.format(tmp_path / "other", "exit 3")
    agents, cable = linked(FOREVER, fails_once, Restart(1, 1.0))
    (tmp_path / "other").touch()
    eventually("the failure of worker:1", lambda: agents.task("worker:1")["state"] == "restarting")
    cable.out = True
    cable.cut()
    eventually("the order", lambda: agents.task("worker:1")["state"] == "starting")
    assert not member_runs(agents)
    mend(cable)
    eventually("its second attempt", lambda: agents.task("worker:1")["state"] == "succeeded")
    assert agents.task("worker:1")["restarts"] == 1
    agents.tell({"do": "stop", "reason": "enough"})
    agents.ended()


def test_what_was_said_before_the_link_broke_is_not_done_twice(linked: Linked, tmp_path: Path) -> None:
    agents, cable = linked(FOREVER, "echo started; exec sleep 1000", Restart(3, 0.01))
    for number in range(1, 4):
        eventually("a link", lambda expected=number: cable.connections == expected)  # type: ignore[misc]
        cable.cut()
    eventually("the last link", lambda: cable.connections == 4)
    agents.tell({"do": "stop", "reason": "enough"})
    status = agents.ended()
    assert [(task["restarts"], task["exit_code"]) for task in status["tasks"]] == [(0, -15), (0, -15)]
    assert agents.log("worker:1") == "started\n"


def test_a_host_that_falls_silent_is_lost_and_kills_its_own_tasks_without_asking_them_to_leave(
    linked: Linked, tmp_path: Path
) -> None:
    """What is told to leave may still be writing, and others may take its place."""
    obstinate = f"trap 'touch {tmp_path}/asked' TERM; while :; do sleep 0.1; done"
    agents, cable = linked(FOREVER, obstinate, Restart(0, 0.0), lost_after_s=1.5)
    cable.lossy = True  # the connections stay: only silence tells
    status = agents.ended()
    assert status["state"] == "failed"
    assert status["cause"].startswith("127.0.0.1: no message for ")
    assert [task["state"] for task in status["tasks"]] == ["stopped", "lost"]
    said = (agents.folder(MEMBER).own / "agent.log").read_text()
    assert "killing worker:1: no message from the lead for 2 s" in said
    assert not (tmp_path / "asked").exists() and not living_under(tmp_path)


def test_a_child_in_a_session_of_its_own_is_killed_with_the_tasks_of_a_host_that_does_not_hear_its_lead(
    linked: Linked, tmp_path: Path
) -> None:
    child = f"setsid sh -c 'echo $$ > {tmp_path}/child; exec sleep 1000' & {FOREVER}"
    agents, cable = linked(FOREVER, child, Restart(0, 0.0), lost_after_s=1.5)
    pid = int(eventually("the child", lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text()))
    cable.lossy = True
    eventually("the end of worker:1, as its agent tells it", lambda: not member_runs(agents))
    assert inspect(pid) is None


def test_a_silence_shorter_than_that_is_no_loss(linked: Linked, tmp_path: Path) -> None:
    agents, cable = linked(*(UNTIL.format(tmp_path / "go", "exit 0") for _ in range(2)), Restart(0, 0.0))
    cable.out = True
    cable.cut()
    eventually("the lead's notice", lambda: "127.0.0.1: " in (agents.folder().own / "agent.log").read_text())
    mend(cable)
    (tmp_path / "go").touch()
    assert agents.ended()["state"] == "succeeded"


def test_an_agent_that_died_is_replaced_and_its_tasks_are_started_again_by_the_new_one(
    linked: Linked, tmp_path: Path
) -> None:
    agents, _ = linked(*(UNTIL.format(tmp_path / "go", "exit 0") for _ in range(2)), Restart(0, 0.0), lost_after_s=60.0)
    agents.kill(MEMBER)
    eventually("the lead's notice", lambda: agents.status()["silent"] == [MEMBER])
    first = agents.start(MEMBER, again=True)
    assert first["ready"] and "lives" not in first
    eventually("its second attempt", lambda: agents.task("worker:1")["restarts"] == 1)
    eventually("a task that runs", lambda: agents.task("worker:1")["state"] == "running")
    eventually("its silence to be over", lambda: agents.status()["silent"] == [])
    del first["ended"], first["notes"]  # who lives is left alone: it ends nothing first, and limits nothing anew
    assert agents.start(MEMBER, again=True) == {**first, "lives": True}
    (tmp_path / "go").touch()
    assert agents.ended()["state"] == "succeeded"
    assert agents.left() == [] and not living_under(tmp_path)
