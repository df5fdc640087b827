"""An attached run as its launcher follows it: every change shown, signals passed on, broken connections made anew."""

import io
import time
from typing import Any, Callable, List, Tuple

import pytest

from launch.fleet import Fleet
from launch.hosts.bundle import JobCode
from launch.hosts.channel import Silence
from launch.plan.plan import make_plan
from launch.run import attached, follower
from launch.run.attached import Attached
from launch.status.run import RunStatus
from launch.view.plain_view import View
from tests.launch.run.leads import END, SUCCEEDED, Lead, Said, answer, change, line
from tests.support.agent.requested import run_request
from tests.support.launch.fakes import FakeHost, fleet_of
from tests.support.launch.statuses import status, task
from tests.support.waiting import let_pass


class Scene:
    """A launcher that follows a run on one host, whose conversations are prepared."""

    def __init__(self, *leads: Lead, detach: bool = False):
        self.host = FakeHost("gpu01", *leads)
        self.fleet: Fleet = fleet_of({"gpu01": self.host})
        self.output = io.StringIO()
        plan = make_plan(self.fleet.spec, JobCode(None, ""), "r-1", "py")
        self.watch = Attached(
            self.fleet,
            plan,
            {"gpu01": run_request(host="gpu01")},
            View(self.output),
            detach,
        )

    def follow(self) -> RunStatus:
        with self.fleet:
            return self.watch.go()

    def signal(self, number: int) -> Callable[[], bytes]:
        """A signal that comes while the lead says nothing new."""

        def come() -> bytes:
            self.fleet.interrupts.received.append(number)
            return line({"beat": True})

        return come


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (follower, attached):
        monkeypatch.setattr(module, "BEAT_S", 0.01)
        monkeypatch.setattr(module, "LEASE_S", 0.2)


def scene(*scripts: Tuple[Said, ...], detach: bool = False) -> Tuple[Scene, List[Lead]]:
    leads = [Lead(*script) for script in scripts]
    return Scene(*leads, detach=detach), leads


def test_a_run_is_told_to_go_and_followed_to_its_end() -> None:
    followed, (lead,) = scene((change(status(state="starting")), change(SUCCEEDED), END))
    assert followed.follow() == SUCCEEDED
    assert lead.told() == ["watch", "go"] and b'"beat"' in lead.sent
    assert lead.closed
    assert "succeeded: 1 succeeded" in followed.output.getvalue()


@pytest.mark.parametrize("refused", [b'"beat"', b'"stop"'])
def test_what_a_lead_has_sent_before_its_end_is_read_though_it_reads_no_more_itself(
    refused: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    followed, (lead,) = scene(())
    lead._script += [change(status()), followed.signal(2), change(SUCCEEDED), END]
    send = lead.send

    def refuse(data: bytes) -> None:
        if refused in data:
            raise BrokenPipeError(32, "Broken pipe")
        send(data)

    monkeypatch.setattr(lead, "send", refuse)
    assert followed.follow() == SUCCEEDED
    assert "lost the connection" not in followed.output.getvalue()


def test_changes_of_some_tasks_leave_the_others_as_they_were() -> None:
    first = status(task(), task("worker:1@gpu02"))
    second = status(task("worker:1@gpu02", "restarting"))
    followed, _ = scene((change(first), change(second), END))
    assert [each.state for each in followed.follow().tasks] == ["running", "restarting"]


def test_the_first_signal_stops_the_run_and_the_second_kills_it() -> None:
    followed, (lead,) = scene(())
    lead._script += [change(status()), followed.signal(2), followed.signal(2), followed.signal(2), END]
    followed.follow()
    assert lead.told() == ["watch", "go", "stop", "kill"]
    assert "SIGINT: stopping the workers, then the ps; a second signal kills them at once" in followed.output.getvalue()
    assert "SIGINT: killing every task" in followed.output.getvalue()


def paused(followed: Scene, *script: Any) -> List[float]:
    """A launcher that is paused by Ctrl-Z while the lead says these; when it stopped itself."""
    stopped: List[float] = []

    def pause() -> None:
        interrupts.pause_asked = False
        stopped.append(time.monotonic())
        interrupts.continued_at = time.monotonic()  # what SIGCONT would have noted

    def ask() -> bytes:
        interrupts.pause_asked = True
        return line({"beat": True})

    interrupts = followed.fleet.interrupts
    interrupts.pause = pause  # type: ignore[method-assign]
    followed.host.channels[0]._script += [ask, *script]
    return stopped


def test_ctrl_z_has_the_lead_wait_and_the_view_goes_on_afterwards() -> None:
    followed, (lead,) = scene((change(status()),))
    told = line({"paused": True})
    stopped = paused(followed, change(status(task("worker:1@gpu02"))), told, change(SUCCEEDED), END)
    assert followed.follow().state == "succeeded"
    assert len(stopped) == 1 and lead.told() == ["watch", "go", "pause"]
    assert lead.sent.rindex(b'"beat"') > lead.sent.rindex(b'"pause"')
    assert "paused: the run continues; `fg` continues this view" in followed.output.getvalue()


def test_a_lead_that_does_not_confirm_a_pause_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attached, "PAUSE_S", 0.05)
    followed, _ = scene((change(status()),))
    paused(followed, *[Silence()] * 200, change(SUCCEEDED), END)
    followed.follow()
    assert "gpu01 has not confirmed the pause: the run ends unless" in followed.output.getvalue()


def test_the_lead_of_a_paused_run_that_is_lost_has_no_successor_since_its_lease_may_not_end() -> None:
    followed, _ = scene((change(status()),))
    paused(followed, line({"paused": True}))
    assert followed.follow().cause == "gpu01: out of reach (the chief's host was lost)"
    assert followed.watch.lead_lost_at is None


def test_a_sigcont_without_a_stop_as_timeout_sends_it_is_no_stop() -> None:
    followed, leads = scene(())

    def go_on() -> bytes:
        followed.fleet.interrupts.continued_at = time.monotonic()
        return change(SUCCEEDED)

    leads[0]._script += [change(status()), go_on, END]
    assert followed.follow() == SUCCEEDED
    assert "was stopped" not in followed.output.getvalue()


def test_a_launcher_that_was_stopped_looks_what_became_of_the_run_before_it_gives_its_host_up() -> None:
    """SIGSTOP cannot be caught: only that the process goes on is known."""
    followed, leads = scene((), (answer(status(state="stopped", cause="not heard from for 18 s")),))

    def stop() -> bytes:
        followed.watch._looked_at -= 18.0
        followed.watch._received_at -= 18.0
        followed.fleet.interrupts.continued_at = time.monotonic()
        return b""

    leads[0]._script += [change(status()), stop]
    assert followed.follow().cause == "not heard from for 18 s"
    assert "this launcher was stopped for 18 s and continues" in followed.output.getvalue()


def test_a_connection_that_breaks_is_made_anew_and_the_run_followed_on() -> None:
    asked = (answer(status()),)
    followed, leads = scene((change(status()),), asked, (change(SUCCEEDED), END))
    assert followed.follow().state == "succeeded"
    assert leads[2].told() == ["watch", "go"]  # the first go may have been lost with its connection
    assert "lost the connection to gpu01; retrying" in followed.output.getvalue()


def test_a_first_connection_that_breaks_is_made_anew_since_the_agents_have_started() -> None:
    """Found by a simulated history: the launcher ended, and left the agents to their lease."""
    followed, leads = scene((), (answer(status(state="starting")),), (change(SUCCEEDED), END))
    leads[0]._script[0] = ConnectionResetError(104, "Connection reset by peer")
    assert followed.follow() == SUCCEEDED
    assert leads[2].told() == ["watch", "go"]
    assert "Connection reset by peer; retrying" in followed.output.getvalue()


def test_a_lead_that_is_out_of_reach_from_the_beginning_fails_the_run_that_has_started() -> None:
    followed, _ = scene()
    assert followed.follow().cause == "gpu01: out of reach (the chief's host was lost)"


def test_a_run_that_ended_while_the_connection_was_broken_is_reported() -> None:
    followed, _ = scene((change(status()),), (answer(SUCCEEDED),))
    assert followed.follow() == SUCCEEDED


def test_a_dead_lead_without_a_status_has_failed_the_run_after_the_length_of_its_lease() -> None:
    """Found by a simulated history: after a power cut and Ctrl-C, the launcher tried again without end."""
    nothing = (line({"status": None, "agent": False, "died": True}),)
    followed, leads = scene((), *[nothing] * 60)
    leads[0]._script += [change(status()), followed.signal(2)]
    found = followed.follow()
    reason = "gpu01: no agent answers there, and none has left a status (the chief's host was lost)"
    assert (found.state, found.cause) == ("failed", reason)


def test_a_lead_that_accepts_each_connection_and_never_answers_is_lost_after_the_length_of_its_lease(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a stopped agent does whose keeper was killed."""
    monkeypatch.setattr(follower, "SILENT_S", 0.02)
    asked = (answer(status(), agent=False, died=False),)
    followed, _ = scene((change(status()),), *[asked, silent()] * 60)
    assert followed.follow().cause == "gpu01: no answer within 0 s (the chief's host was lost)"
    lost_at = followed.watch.lead_lost_at
    assert lost_at is not None and lost_at == followed.watch._attached_at > followed.watch._received_at


def silent() -> Tuple[Said, ...]:
    """What a lead says that is there, and says nothing."""

    def wait() -> bytes:
        let_pass(0.005)
        raise Silence

    return (wait,) * 100


def test_a_signal_from_before_the_connection_broke_does_not_end_the_following() -> None:
    followed, leads = scene((), (answer(status()),), (change(status(state="stopped")), END))
    leads[0]._script += [change(status()), followed.signal(2)]
    assert followed.follow().state == "stopped"
    assert leads[0].told() == ["watch", "go", "stop"]


def test_a_signal_that_the_lead_may_not_have_heard_is_told_again() -> None:
    followed, leads = scene((), (answer(status()),), (change(status(state="stopped")), END))
    leads[0]._script += [change(status()), followed.signal(2)]
    followed.follow()
    assert "stop" in leads[2].told()


def test_a_lead_that_is_out_of_reach_for_the_length_of_its_lease_has_failed_the_run() -> None:
    followed, _ = scene((change(status(task(), task("worker:1@gpu02"))),))
    found = followed.follow()
    assert (found.state, found.cause) == ("failed", "gpu01: out of reach (the chief's host was lost)")
    assert [each.state for each in found.tasks] == ["lost", "running"]


def test_a_lead_that_was_never_heard_has_failed_the_run_too() -> None:
    found = scene(())[0].follow()
    assert (found.state, found.run) == ("failed", "r-1")
    assert found.cause == "gpu01: out of reach (the chief's host was lost)"


def test_a_detached_run_is_left_when_it_is_up() -> None:
    followed, (lead,) = scene(
        (change(status(state="starting")), change(status()), line({"detached": True})), detach=True
    )
    assert followed.follow().state == "running"
    assert lead.told() == ["watch", "go", "detach"]


def test_a_run_that_fails_before_it_is_up_is_not_left() -> None:
    broken = status(state="failed", cause="worker:0@gpu01: exit code 3")
    followed, (lead,) = scene((change(status(state="starting")), change(broken), END), detach=True)
    assert followed.follow().cause == "worker:0@gpu01: exit code 3"
    assert "detach" not in lead.told()


def test_a_lead_that_did_not_confirm_to_be_left_is_asked_again() -> None:
    asked = (answer(status()),)
    followed, leads = scene((change(status()),), asked, (change(status()), line({"detached": True})), detach=True)
    assert followed.follow().state == "running"
    assert leads[0].told()[-1] == leads[2].told()[-1] == "detach"
    assert "gpu01 has not recorded that the run continues without this launcher" in followed.output.getvalue()


def test_after_a_signal_a_run_is_not_left() -> None:
    followed, (lead,) = scene((), detach=True)
    lead._script += [followed.signal(2), change(status()), change(status(state="stopped")), END]
    assert followed.follow().state == "stopped"
    assert "detach" not in lead.told()


def test_a_beat_names_the_newest_answer_of_its_conversation() -> None:
    """A lead may read a beat long after it was sent, so only what the launcher had received by then counts."""
    one, other, asked = line({"beat": [7.0, 7.5]}), line({"beat": [8.0, 8.5]}), (answer(status()),)
    followed, leads = scene((one, change(status())), asked, (other, change(status()), END))
    followed.follow()
    assert [lead.heard()[:2] for lead in (leads[0], leads[2])] == [[None, [7.0, 7.5]], [None, [8.0, 8.5]]]
