"""A lead that was started again goes on where the one before had come to."""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from cluster.protocol.typed_json import to_values
from launch.agent.protocol.messages import Go, Joined, Start
from launch.agent.service import beginning, recovery
from launch.agent.service.recovery import Earlier
from launch.agent.state.run_folder import RunFolder
from launch.status.run import RunStatus, utc
from tests.support.agent.histories import Replay, advanced, failed, incidents, killed, run_plan, started, step
from tests.support.agent.requested import run_request


def before() -> RunStatus:
    """The status of a run that trained up to step 40, whose worker:1 had failed once."""
    replay = Replay()
    replay.up()
    replay.at(1.0, advanced("worker:0", 20, examples=1), failed("worker:1"))
    replay.at(3.0, started("worker:1", 1))
    replay.at(4.0, advanced("worker:1", 21, 1, examples=1))
    replay.at(5.0, advanced("worker:0", 40, examples=2, checkpoint_step=30))
    return replay.run.status()


def gone_on() -> Replay:
    """Another lead for that run, which begins at 100 on a clock of its own; the first died 2 s before."""
    replay = Replay()
    for task, attempt in (("ps:0", 1), ("worker:0", 1), ("worker:1", 2)):
        replay.run.tasks[task].attempt = attempt
    recovery.continue_run(replay.run, Earlier(before(), ago_s=2.0, lasted_s=50.0), "a", 100.0)
    return replay


def test_every_task_begins_as_its_next_attempt_when_every_host_has_joined() -> None:
    replay = gone_on()
    assert replay.at(100.0, Joined("a", "2"), Go()) == []
    assert replay.at(101.0, Joined("b", "1")) == [Start("ps:0", 1), Start("worker:0", 1), Start("worker:1", 2)]
    assert replay.run.state.label == "running"


def test_an_attempt_that_was_ordered_since_the_last_status_is_not_ordered_once_more(tmp_path: Path) -> None:
    """A lead that was killed in the first quarter of a second gave each task two attempts of one number."""
    folder = RunFolder(tmp_path, "r-1", "a")
    folder.create()
    replay, following = Replay(), Replay()
    recovery.Attempts(folder).note(replay.at(1.0, *map(Joined, replay.run.plan.hosts), Go()))
    recovery.Attempts(folder).note([Start("worker:1", 1)])
    recovery.Attempts(folder).continue_in(following.run)
    assert [task.attempt for task in following.run.tasks.values()] == [1, 1, 2]


def test_a_lead_that_read_the_attempts_from_the_status_leaves_them_on_record_for_the_next(tmp_path: Path) -> None:
    """Found by seed 3058061: the record was damaged, and the second lead ended before it started a task."""
    folder = RunFolder(tmp_path, "r-1", "a")
    folder.create()
    shown = replace(before(), tasks=[replace(before().tasks[0], log="/w/runs/r-1/logs/ps.0_2.log")])
    recovery.Attempts(folder).continue_in(Replay().run, shown)
    third = Replay()
    recovery.Attempts(folder).continue_in(third.run)
    assert third.run.tasks["ps:0"].attempt == 3


def test_the_record_of_attempts_is_on_disk_before_the_order_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut took it where a launcher, and no boot, had the lead begin again."""
    folder = RunFolder(tmp_path, "r-1", "a")
    folder.create()
    synced: List[int] = []
    monkeypatch.setattr(os, "fsync", lambda handle: synced.append(os.fstat(handle).st_ino))
    recovery.Attempts(folder).note([Start("worker:1", 1)])
    assert synced == [(folder.own / recovery.ATTEMPTS).stat().st_ino, folder.own.stat().st_ino]


def test_the_incidents_so_far_are_kept_and_the_end_of_the_agent_is_the_next() -> None:
    replay = gone_on()
    old, new = replay.run.incidents.statuses()
    assert (old.number, old.kind, old.role, old.index, old.open) == (1, "exit", "worker", 1, False)
    assert old == replace(before().incidents[0], open=False)
    assert (new.number, new.kind, new.host, new.open) == (2, "agent", "a", True)
    assert new.cause == "its agent ended, and every task of the run with it"
    assert (new.step, new.at_s) == (40, 50.0)


def test_what_was_lost_is_counted_across_the_two_leads() -> None:
    replay = gone_on()
    replay.at(100.0, Joined("a", "2"), Joined("b", "1"), Go())
    for order in (Start("ps:0", 1), Start("worker:0", 1), Start("worker:1", 2)):
        replay.at(101.0, started(order.task, order.attempt), advanced(order.task, 30, order.attempt))
    replay.at(105.0, advanced("worker:0", 31, 1, examples=64, checkpoint_step=30))
    replay.at(108.0, advanced("worker:0", 41, 1, examples=640, checkpoint_step=30))
    incident = replay.run.incidents.statuses()[-1]
    assert (incident.open, incident.lost_steps) == (False, 10)
    assert incident.lost_seconds is not None and incident.lost_seconds >= 8.0


def test_a_return_that_a_worker_could_not_report_to_the_first_lead_counts_once() -> None:
    """Its host's disk was full, and its last step from before: a simulated history found steps that were lost twice."""
    first = Replay()
    first.up()
    first.at(1.0, advanced("worker:0", 20, examples=9), advanced("worker:1", 20, examples=9))
    first.at(2.0, failed("ps:0"))
    first.at(3.0, started("ps:0", 1))
    first.at(5.0, advanced("worker:1", 1, examples=10))
    first.at(7.0, advanced("worker:1", 6, examples=15))
    status = first.run.status()
    assert (status.global_step, status.lost_steps) == (6, 20)
    then = Replay()
    recovery.continue_run(then.run, Earlier(status, ago_s=2.0, lasted_s=50.0), "a", 100.0)
    then.up()
    then.at(110.0, advanced("worker:0", 1, examples=1), advanced("worker:1", 1, examples=1))
    assert then.run.status().lost_steps == 26


def next_lead(replay: Replay, now: float, *tasks: str, **options: Any) -> Replay:
    """The lead that goes on with a run whose last status is of now, and has started every task again."""
    following = Replay(*tasks, **options)
    recovery.continue_run(following.run, Earlier(replay.run.status(), 1.0, now), "a", now)
    for order in following.at(now, *(Joined(host) for host in following.run.plan.hosts), Go()):
        assert isinstance(order, Start)
        following.at(now, started(order.task, order.attempt))
    return following


def test_a_return_counts_once_where_the_lead_dies_while_every_worker_starts_after_it() -> None:
    replay = Replay(steps=1000)
    replay.up()
    step(replay, 10.0, 20, checkpoint_step=0)
    for now, to in [(20.0, 1), (22.0, 5)]:
        for task in ("worker:0", "worker:1"):
            replay.at(now, advanced(task, to, examples=30 + to, checkpoint_step=0))
    replay.at(23.0, killed("worker:0"), killed("worker:1"))
    replay.at(30.0)
    assert replay.status()["global_step"] == 5, "not that of before the return"
    following = next_lead(replay, 31.0, steps=1000)
    for task in ("worker:0", "worker:1"):
        attempt = following.run.tasks[task].attempt
        following.at(40.0, advanced(task, 1, attempt, examples=1, checkpoint_step=0))
    assert following.status()["lost_steps"] == 20 + 5


def test_what_a_program_loses_is_in_an_incident_where_the_lead_dies_while_all_its_tasks_start() -> None:
    tasks = ("worker:0@a", "worker:1@b")
    options: Dict[str, Any] = {"judge": "exit", "steps": None}
    replay = Replay(*tasks, **options)
    replay.begin()
    replay.at(0.0, *map(started, replay.run.tasks))
    for now, to in [(1.0, 1), (10.0, 20)]:
        for task in ("worker:0", "worker:1"):
            replay.at(now, advanced(task, to, reports=to))
    replay.at(11.0, killed("worker:0"), killed("worker:1"))
    replay.at(13.0)
    following = next_lead(replay, 14.0, *tasks, **options)
    for now, to in [(20.0, 1), (40.0, 30)]:
        for task in ("worker:0", "worker:1"):
            following.at(now, advanced(task, to, following.run.tasks[task].attempt, reports=to))
    assert following.status()["lost_steps"] and any(told["lost_steps"] for told in incidents(following))


def test_without_a_status_or_after_the_end_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "r-1", "a")
    folder.create()
    assert recovery.read(folder) is None
    folder.write("plan.json", {})
    folder.write("status.json", to_values(replace(before(), state="succeeded")))
    assert recovery.read(folder) is None
    folder.write("status.json", to_values(before()))
    found = recovery.read(folder)
    assert found is not None and found.status == before() and 0 <= found.ago_s < 60


def test_the_time_of_a_run_of_days_counts_from_its_start_although_its_files_are_kept_young(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, "r-1", "a")
    folder.create()
    folder.write("plan.json", {})
    days_ago = time.time() - 3 * 86400
    folder.write("status.json", to_values(replace(before(), started=utc(days_ago))))
    found = recovery.read(folder)
    assert found is not None and found.lasted_s == pytest.approx(3 * 86400, abs=5.0)
    run = Replay(deadline_s=2 * 86400.0)
    recovery.continue_run(run.run, found, "a", 100.0)
    run.at(101.0)
    assert run.run.state.result == "stopped"


@pytest.mark.parametrize(
    "min_workers, booted, join_s, quorum",
    [(None, True, 900.0, 0), (None, False, 900.0, 0), (1, True, 900.0, 2), (1, False, 20.0, 0)],
)
def test_a_lead_waits_longer_for_hosts_that_boot_and_after_its_own_boot_needs_most_of_them(
    min_workers: Optional[int], booted: bool, join_s: float, quorum: int
) -> None:
    plan = replace(run_plan(("ps:0@a", "worker:0@b", "worker:1@c")), min_workers=min_workers, rejoin_s=900.0)
    found = recovery.rejoined(plan, booted)
    assert (found.join_s, found.quorum) == (join_s, quorum)


@pytest.mark.parametrize("detached", [True, False])
@pytest.mark.parametrize(
    "status, goes_on",
    [
        ({"state": "running", "cause": None}, True),
        ({"state": "succeeded", "cause": None}, False),
        ({"state": "running", "cause": "worker:0 left with exit code 3"}, False),  # it is about to end
        (None, True),
    ],
)
def test_a_lead_is_started_again_by_nobody_where_the_run_is_over_or_its_launcher_is_there(
    status: Optional[Dict[str, Any]], goes_on: bool, detached: bool, tmp_path: Path
) -> None:
    folder = folder_with(tmp_path, **{"status.json": status, "detached.json": {} if detached else None})
    lead = run_request(run_plan=run_plan())
    assert beginning.goes_on(folder, lead) is (goes_on and detached)
    assert beginning.goes_on(folder, replace(lead, run_plan=None))  # a member learns from the lead


def test_a_status_that_a_power_cut_has_left_in_pieces_is_none(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, **{"detached.json": {}})
    (folder.own / "status.json").write_text("")
    assert recovery.read(folder) is None and beginning.goes_on(folder, run_request(run_plan=run_plan()))


def folder_with(tmp_path: Path, **files: Any) -> RunFolder:
    folder = RunFolder(tmp_path, "r-1", "a")
    folder.create()
    for name, values in files.items():
        if values is not None:
            folder.write(name, values)
    return folder
