"""Who looks on at a run: every change is shown, nothing is asked of the run, broken connections are made anew."""

import io

import pytest

from launch.errors import CannotStart, ProblemKind, UsageError
from launch.history import newest_status
from launch.run import follower
from launch.run.follower import Follower
from launch.status.run import RunStatus
from launch.view.plain_view import View
from tests.launch.run.leads import END, SUCCEEDED, Lead, Said, answer, change, line
from tests.support.launch.fakes import FakeHost, fleet_of
from tests.support.launch.statuses import status, task


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "BEAT_S", 0.01)
    monkeypatch.setattr(follower, "LEASE_S", 0.2)


class Scene:
    """Somebody who looks at r-1 on gpu01, whose conversations are prepared."""

    def __init__(self, *leads: Lead):
        self.fleet = fleet_of({"gpu01": FakeHost("gpu01", *leads)})
        self.output = io.StringIO()

    def follow(self) -> RunStatus:
        with self.fleet:
            return Follower(self.fleet, status(state="starting"), View(self.output)).follow()


def test_a_run_is_followed_to_its_end_and_told_nothing() -> None:
    lead = Lead(change(status()), change(SUCCEEDED), END)
    scene = Scene(lead)
    assert scene.follow() == SUCCEEDED
    assert lead.told() == ["watch", "ping"]
    assert b'"run": "r-1"' in lead.sent
    assert "succeeded: 1 succeeded" in scene.output.getvalue()


def test_a_signal_ends_the_looking_and_not_the_run() -> None:
    def interrupt() -> bytes:
        scene.fleet.interrupts.received.append(2)
        return line({"ping": True})

    said: Said = interrupt
    lead = Lead(change(status()), said, change(SUCCEEDED), END)
    scene = Scene(lead)
    assert scene.follow().state == "running"
    assert set(lead.told()) == {"watch", "ping"}


def test_a_connection_that_breaks_is_made_anew() -> None:
    asked = Lead(answer(status()))
    scene = Scene(Lead(change(status())), asked, Lead(change(SUCCEEDED), END))
    assert scene.follow() == SUCCEEDED
    assert "lost the connection to gpu01; retrying" in scene.output.getvalue()


def test_a_run_that_is_out_of_reach_from_here_is_not_said_to_have_failed() -> None:
    with pytest.raises(CannotStart) as caught:
        Scene(Lead(change(status(task())))).follow()
    assert str(caught.value) == "gpu01: out of reach; the run may continue there"


def test_the_newest_status_is_the_leads_answer() -> None:
    found = answer(status(), run="r-1", generation=1, lives=True, lead="gpu01")
    fleet = fleet_of({"gpu01": FakeHost("gpu01", Lead(found)), "gpu02": FakeHost("gpu02")})
    assert newest_status(fleet, "r.yaml") == status()


def test_a_run_that_never_was_is_told_with_what_to_do() -> None:
    fleet = fleet_of({"gpu01": FakeHost("gpu01", Lead(line({"status": None})))})
    with pytest.raises(UsageError, match=r"r.yaml: no run of this name has been on gpu01; start one with `launch up r"):
        newest_status(fleet, "r.yaml")


def test_where_the_chiefs_host_is_out_of_reach_it_is_told_how_to_go_on_without_it() -> None:
    fleet = fleet_of({"gpu01": FakeHost("gpu01"), "gpu02": FakeHost("gpu02")})
    with pytest.raises(CannotStart) as caught:
        newest_status(fleet, "r.yaml")
    advice = "if gpu01 is lost, continue without it with `launch up --resume r.yaml --exclude gpu01`"
    assert str(caught.value).splitlines()[-1] == advice


@pytest.mark.parametrize("kind", [ProblemKind.DISK, ProblemKind.FOLDER, ProblemKind.OLD_PYTHON])
def test_a_host_that_can_be_mended_is_not_called_lost(kind: ProblemKind) -> None:
    refused = Lead(line({"error": "no", "kind": kind.value}))
    fleet = fleet_of({"gpu01": FakeHost("gpu01", refused), "gpu02": FakeHost("gpu02")})
    with pytest.raises(CannotStart) as caught:
        newest_status(fleet, "r.yaml")
    assert "gpu01: no" in str(caught.value) and "--exclude" not in str(caught.value)
