"""A detached run is up once it has outlived its logins: its lead names the hosts, and the others are asked."""

from typing import Any, Dict, List

import pytest

from launch.errors import CannotStart
from launch.run import outliving
from launch.run.outliving import ADVICE, ended_with_login, prove_outliving
from tests.launch.run.leads import Lead, answer, line
from tests.support.launch.fakes import FakeHost, fleet_of
from tests.support.launch.statuses import status

KNOWN: Dict[str, Any] = {"run": "r-1", "generation": 1, "lead": "gpu01"}
LEADS = answer(status(), **KNOWN, lives=True)
LEAVES = answer(status(departed="gpu02"), **KNOWN, lives=True)
LINKED, ALONE, NO_LEAD = line({"hosts": ["gpu01", "gpu02"]}), line({"hosts": ["gpu01"]}), line({"error": "no run"})
MEMBER, GONE = (line({"status": None, **KNOWN, "lives": lives, "died": not lives}) for lives in (True, False))
DIED = answer(status(state="failed"), **KNOWN, lives=False, agent=False, died=True)
DOWN = line(
    {"run": "r-1", "processes": [], "ports": [], "gpu_memory": [], "locks": [], "groups": [], "containers": [],
     "after": None}
)  # fmt: skip
ENDS = "the run's processes there end with the login that started them"


@pytest.fixture(autouse=True)
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outliving, "SETTLE_S", 0.0)


class Scene:
    """Two hosts, each with what it answers over its second connection, and then to ``down``; the first has the lead."""

    def __init__(self, linked: bytes, *answers: bytes):
        self.order: List[str] = []
        said = [[linked, answers[0]], *([each] for each in answers[1:])]
        self.hosts = [FakeHost(f"gpu0{number + 1}", *map(Lead, each), Lead(DOWN)) for number, each in enumerate(said)]
        for host in self.hosts:
            host._connect = lambda name: self.order.append(f"connect {name}, closed {self.closed(name)}")
        self.fleet = fleet_of({host.name: host for host in self.hosts})

    def closed(self, name: str) -> int:
        return next(host.closed for host in self.hosts if host.name == name)

    def prove(self) -> List[str]:
        with self.fleet:
            self.order.clear()
            self.fleet.lead = "gpu01"
            return prove_outliving(self.fleet, "r-1", [host.name for host in self.hosts])


def test_each_login_is_closed_before_the_lead_names_the_hosts_and_the_others_are_asked() -> None:
    scene = Scene(ALONE, LEADS, MEMBER)
    assert scene.prove() == []
    assert scene.order == ["connect gpu01, closed 1", "connect gpu02, closed 1"]


def test_a_host_whose_agent_is_linked_to_the_lead_needs_no_second_login() -> None:
    scene = Scene(LINKED, LEADS, GONE)
    assert scene.prove() == [] and scene.order == ["connect gpu01, closed 1"]


def test_without_a_lead_every_host_is_asked() -> None:
    scene = Scene(NO_LEAD, LEADS, MEMBER)
    assert scene.prove() == [] and "connect gpu02, closed 1" in scene.order


@pytest.mark.parametrize(
    ("linked", "lead", "member", "named"),
    [
        (ALONE, LEADS, GONE, ["gpu02"]),  # killed
        (LINKED, LEAVES, MEMBER, ["gpu02"]),  # its agent has received SIGTERM and ends its tasks
        (NO_LEAD, DIED, GONE, ["gpu01", "gpu02"]),
    ],
)
def test_a_run_that_ends_with_its_logins_is_taken_down_and_the_way_out_is_named(
    linked: bytes, lead: bytes, member: bytes, named: List[str]
) -> None:
    scene = Scene(linked, lead, member)
    if linked == LINKED:
        scene.hosts[1].channels.pop(0)  # nobody asks that host for its status
    with pytest.raises(CannotStart) as caught:
        scene.prove()
    assert str(caught.value).splitlines() == [*(f"{host}: {ENDS}" for host in named), ADVICE]
    assert not any(host.channels for host in scene.hosts), "both were asked to end it"


def test_a_host_that_cannot_be_asked_to_end_such_a_run_is_named() -> None:
    scene = Scene(NO_LEAD, DIED, GONE)
    scene.hosts[1].channels.pop()
    with pytest.raises(CannotStart, match=f"gpu01: {ENDS}\ngpu02: {ENDS}\ngpu02: out of reach; the run"):
        scene.prove()


def test_a_run_that_has_ended_by_itself_meanwhile_is_not_blamed_on_the_login() -> None:
    succeeded = answer(status(state="succeeded"), **KNOWN, lives=False, agent=False, died=False)
    assert Scene(ALONE, succeeded, GONE).prove() == []


def test_a_host_that_cannot_be_asked_is_named_and_the_run_stays() -> None:
    scene = Scene(ALONE, LEADS, MEMBER)
    scene.hosts[1].channels.clear()
    assert scene.prove() == ["gpu02: out of reach; the run may have ended there with the login"]
    assert len(scene.hosts[0].channels) == 1


def test_hosts_without_a_status_of_the_run_are_judged_by_their_agents() -> None:
    assert ended_with_login({"a": {"status": None, "lives": True}, "b": {"status": None, "lives": False}}) == ["b"]
