"""The reasons for which a run stays whatever its rule; of two clocks, the one counts by which it is younger."""

import os
import subprocess
from pathlib import Path
from typing import Any, Dict

import pytest

from launch.agent.linux.processes import inspect
from launch.agent.retention.past_runs import Clocks, described, known_runs, needed
from launch.agent.retention.rules import DAY_S
from launch.agent.state import locks, process_records
from launch.agent.state.run_folder import RunFolder
from tests.launch.agent.retention.conftest import PastRuns
from tests.support.agent.saved import save

OLD, MIDDLE, NEW = "a-20260101-120000", "a-20260102-120000", "a-20260103-120000"
OTHER = "b-20260101-120000"


def three(past: PastRuns) -> Dict[str, RunFolder]:
    return {run: past.make(run, days) for run, days in ((OLD, 30), (MIDDLE, 20), (NEW, 10))}


def why(past: PastRuns) -> Dict[str, str]:
    return needed(known_runs(past.workdir, ["h"]), past.clocks)


def test_the_newest_of_each_name_stays(past: PastRuns) -> None:
    three(past)
    past.make(OTHER, 100)
    assert why(past) == {NEW: "the newest of its name", OTHER: "the newest of its name"}


def test_so_does_the_newest_with_a_checkpoint_which_resume_would_go_on_from(past: PastRuns) -> None:
    runs = three(past)
    for run in (OLD, MIDDLE):
        save(runs[run].checkpoint, 20)
    assert why(past)[MIDDLE] == "the newest of its name with a checkpoint" and OLD not in why(past)
    save(runs[NEW].replica, 30)
    assert set(why(past)) == {NEW}


def test_a_run_with_a_living_agent_stays_also_under_another_name_of_this_machine(past: PastRuns) -> None:
    runs, me = three(past), inspect(os.getpid())
    assert me is not None
    part = RunFolder(past.workdir, OLD, "another")
    part.create(again=True)
    process_records.write_agent(part, me, me)
    assert why(past)[OLD] == "its agent on another lives"
    with locks.hold(runs[MIDDLE], "a", "r.yaml"):
        assert why(past)[MIDDLE] == "its agent on h lives"


def test_a_run_with_a_living_task_stays_though_its_agent_is_gone(past: PastRuns) -> None:
    folder = three(past)[OLD]
    with subprocess.Popen(["sleep", "100"]) as task:
        start = inspect(task.pid).start  # type: ignore[union-attr]
        name = {"pid": task.pid, "start": start}
        folder.write(process_records.TASKS, {"boot": process_records.boot(), "leaders": [name], "others": []})
        assert why(past)[OLD].startswith("processes of the run are alive on h")
        task.kill()
    past.age(folder, 30)
    assert OLD not in why(past)


@pytest.mark.parametrize("text", ["{", '{"boot": "of another machine"}'])
def test_a_run_that_may_live_on_a_machine_with_the_same_folder_stays_for_two_days(text: str, past: PastRuns) -> None:
    folder = three(past)[OLD]
    (folder.own / process_records.AGENT).write_text(text)
    assert why(past)[OLD] == "no record since this machine booted shows that the run has ended on h"
    past.age(folder, 1.9)
    assert OLD in why(past)
    past.age(folder, 2.1)
    assert OLD not in why(past)


def test_a_run_that_ended_in_this_boot_needs_no_such_time(past: PastRuns) -> None:
    folder = three(past)[OLD]
    gone = {"pid": 1, "start": -1}
    folder.write(process_records.AGENT, {"boot": process_records.boot(), "agent": gone, "keeper": gone})
    past.age(folder, 0.1)
    assert OLD not in why(past)


@pytest.mark.parametrize(
    "plan",
    [
        {"resume_from": {"run": OLD, "step": 3}},
        {
            "tasks": [
                {"name": "worker:0", "argv": ["py", f'{{"warm_start": {{"checkpoint": "~/.launch/runs/{OLD}"}}}}']}
            ]
        },
        {"tasks": [{"name": "worker:0", "env": {"INIT": f"/w/runs/{OLD}/checkpoint/model-3"}}]},
    ],
)
def test_a_run_that_the_newest_of_a_name_has_in_its_plan_stays(plan: Dict[str, Any], past: PastRuns) -> None:
    three(past)
    past.make(OTHER, 5, **plan)
    assert why(past)[OLD] == f"the plan of {OTHER} names this run"


def test_a_run_that_only_a_past_run_has_in_its_plan_does_not(past: PastRuns) -> None:
    three(past)
    past.make("a-20260104-120000", 1)
    folder = RunFolder(past.workdir, NEW, "h")
    folder.write("plan.json", {"name": "a", "resume_from": {"run": OLD, "step": 3}})
    past.age(folder, 10)
    assert OLD not in why(past)


def test_what_was_used_within_the_hour_stays(past: PastRuns) -> None:
    folder = three(past)[OLD]
    (folder.path / "note").write_text("x")
    found = {each.run: each.needed for each in described(known_runs(past.workdir, ["h"]), past.clocks)}
    assert found[OLD] == "used within the last hour" and found[MIDDLE] is None


def test_of_two_clocks_the_one_counts_by_which_a_run_is_younger(past: PastRuns) -> None:
    three(past)
    runs, year = known_runs(past.workdir, ["h"]), 365 * DAY_S
    for clocks in (Clocks(past.now + year, past.now), Clocks(past.now, past.now + year), past.clocks):
        assert [round(each.age_s / DAY_S) for each in described(runs, clocks)] == [10, 20, 30]
    assert [each.age_s for each in described(runs, Clocks(past.now, 0.0))] == [0, 0, 0]


def test_only_runs_of_this_host_are_known_and_no_link_and_nothing_else(past: PastRuns, tmp_path: Path) -> None:
    three(past)
    past.make("a-20260105-120000", 1, host="elsewhere")
    moved = past.make("a-20260106-120000", 1).path
    moved.rename(tmp_path / "moved")
    moved.symlink_to(tmp_path / "moved")
    for name in (".removed-a-20260101-120000-00", "mine", "a-1/hosts/h"):
        (past.workdir / "runs" / name).mkdir(parents=True)
    assert [each.run for each in known_runs(past.workdir, ["h"])] == [NEW, MIDDLE, OLD]
    assert known_runs(tmp_path / "none", ["h"]) == []
