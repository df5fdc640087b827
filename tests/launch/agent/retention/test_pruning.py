"""A host shows what goes by the rules of each name, removes that and nothing else, and goes on where it was killed."""

import os
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from cluster.protocol.settings import DEFAULT_KEEP, Keep
from launch.agent.linux import file_lock, procfs
from launch.agent.retention import past_runs, pruning
from launch.agent.retention.measure import measure
from launch.agent.retention.pruning import PrunedPlace, look, prune
from launch.agent.state import locks, process_records
from launch.agent.state.run_folder import RunFolder
from launch.status.removals import PruneAnswer
from tests.launch.agent.retention.conftest import PastRuns
from tests.launch.agent.retention.test_used_code import ONE
from tests.launch.agent.retention.test_used_code import make as make_code

RUNS = ["a-20260101-120000", "a-20260102-120000", "a-20260103-120000", "a-20260104-120000"]
TWO = {"a": Keep(runs=2)}


def four(past: PastRuns, **more: Any) -> None:
    for days, run in zip((40, 30, 20, 10), RUNS):
        past.make(run, days, **more)


def place(past: PastRuns, rules: Dict[str, Keep]) -> PrunedPlace:
    return PrunedPlace(past.workdir, ["h"], rules)


def names(answer: PruneAnswer) -> List[str]:
    return [each.name for each in answer.going]


def test_a_look_shows_what_goes_and_removes_nothing(past: PastRuns) -> None:
    four(past)
    found = look(place(past, TWO), past.clocks)
    assert names(found) == [RUNS[1], RUNS[0]] and found.runs == 4 and past.left() == RUNS
    assert all(each.bytes > 0 and each.why == "more than 2 runs of its name" for each in found.going)
    assert found.bytes > sum(each.bytes for each in found.going)


def test_what_was_shown_is_removed_and_the_rest_stays(past: PastRuns) -> None:
    four(past)
    assert names(prune(place(past, TWO), past.clocks)) == [RUNS[1], RUNS[0]] and past.left() == RUNS[2:]
    assert names(prune(place(past, TWO), past.clocks)) == []


@pytest.mark.parametrize(
    ("rule", "measured"),
    [(Keep(runs=3), 1), (Keep(days=15), 3), (Keep(gib=1), 4), (DEFAULT_KEEP, 0), (Keep(), 0)],
)
def test_beside_a_run_only_those_are_measured_that_may_be_beyond_a_bound(
    rule: Keep, measured: int, past: PastRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    four(past)
    seen: List[Path] = []

    def note(folder: Path) -> Any:
        seen.append(folder)
        return measure(folder)

    monkeypatch.setattr(past_runs, "measure", note)
    found = look(place(past, {"a": rule}), past.clocks, whole=False)
    assert len(seen) == measured
    assert names(found) == names(look(place(past, {"a": rule}), past.clocks))


def test_each_name_has_the_rule_of_the_request_or_that_of_its_newest_run_or_none(past: PastRuns) -> None:
    four(past)
    for run, days, rule in (("b-20260101-120000", 40, None), ("b-20260102-120000", 30, Keep(days=35))):
        past.make(run, days, rule=rule)
    for run, days in (("c-20260101-120000", 900), ("c-20260102-120000", 800)):  # of a version without rules
        past.make(run, days)
    assert names(look(place(past, {}), past.clocks)) == ["b-20260101-120000"]
    assert names(look(place(past, {"c": DEFAULT_KEEP}), past.clocks)) == ["b-20260101-120000", "c-20260101-120000"]


def test_a_run_that_is_beyond_its_bound_and_needed_is_told(past: PastRuns) -> None:
    four(past)
    past.make("b-20260101-120000", 5, resume_from={"run": RUNS[0], "step": 3})
    (spared,) = look(place(past, TWO), past.clocks).spared
    assert (spared.run, spared.needed) == (RUNS[0], "the plan of b-20260101-120000 names this run")


def test_code_that_nothing_uses_goes_whatever_the_rules_are(past: PastRuns) -> None:
    code = make_code(past, ONE, 8)
    (found,) = prune(place(past, {}), past.clocks).going
    assert (found.what, found.name, code.exists()) == ("code", ONE, False)


def test_the_code_of_a_run_that_may_live_stays(past: PastRuns) -> None:
    make_code(past, ONE, 8)
    past.make(RUNS[0], 1.5, code={"launcher": ONE})
    assert names(look(place(past, {}), past.clocks)) == []


def test_what_a_killed_removal_left_is_removed_by_the_next(past: PastRuns) -> None:
    four(past)
    pruning.hide(past.workdir / "runs" / RUNS[0])
    (found,) = look(place(past, {}), past.clocks).going
    assert found.what == "rest" and found.name.startswith(f"{pruning.REMOVED}{RUNS[0]}")
    prune(place(past, {}), past.clocks)
    assert past.left() == RUNS[1:]


def test_while_a_run_starts_nothing_is_removed(past: PastRuns) -> None:
    four(past)
    with locks.no_removal(past.workdir):
        answer = prune(place(past, TWO), past.clocks)
    assert {each.why for each in answer.failed} == {"a run is starting here; try again"} and past.left() == RUNS


def test_a_run_that_starts_waits_until_the_removal_is_over(past: PastRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: List[float] = []
    with ExitStack() as removing:
        removing.enter_context(locks.removal(past.workdir))

        def sleep(seconds: float) -> None:
            waited.append(seconds)
            removing.close()

        monkeypatch.setattr(time, "sleep", sleep)
        with locks.no_removal(past.workdir), pytest.raises(file_lock.LockHeld):
            locks.removal(past.workdir).__enter__()
    assert len(waited) == 1


def begin_resuming(past: PastRuns) -> None:
    past.make("b-20260101-120000", 0, resume_from={"run": RUNS[0], "step": 3})


def write_into_it(past: PastRuns) -> None:
    gone = {"pid": 1, "start": -1}
    record = {"boot": process_records.boot(), "agent": gone, "keeper": gone}
    RunFolder(past.workdir, RUNS[0], "h").write(process_records.AGENT, record)


def put_a_link_there(past: PastRuns) -> None:
    path = past.workdir / "runs" / RUNS[0]
    path.rename(path.with_name("moved"))
    path.symlink_to(path.with_name("moved"))
    os.utime(str(path), (1, 1), follow_symlinks=False)


@pytest.mark.parametrize("happens", [begin_resuming, write_into_it, put_a_link_there])
def test_what_is_used_between_the_look_and_the_removal_stays(
    happens: Callable[[PastRuns], None], past: PastRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    four(past)

    def look_first(*asked: Any) -> PruneAnswer:
        found = look(*asked)
        happens(past)
        return found

    monkeypatch.setattr(pruning, "look", look_first)
    (failed,) = prune(place(past, TWO), past.clocks).failed
    assert failed.name == RUNS[0] and RUNS[0] in past.left() and RUNS[1] not in past.left()


def test_another_host_of_a_shared_folder_may_be_faster(past: PastRuns, monkeypatch: pytest.MonkeyPatch) -> None:
    four(past)

    def look_first(*asked: Any) -> PruneAnswer:
        found = look(*asked)
        pruning.remove(pruning.hide(past.workdir / "runs" / RUNS[0]))
        return found

    monkeypatch.setattr(pruning, "look", look_first)
    assert prune(place(past, TWO), past.clocks).failed == [] and past.left() == RUNS[2:]


def test_without_a_working_folder_there_is_nothing(tmp_path: Path) -> None:
    past = PastRuns(tmp_path / "none")
    assert prune(place(past, TWO), past.clocks) == PruneAnswer(0, 0, [], [], []) and not past.workdir.exists()


def test_a_run_in_which_something_is_mounted_stays_with_the_path(
    past: PastRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    four(past)
    monkeypatch.setattr(procfs, "MOUNTS", past.workdir / "mountinfo")
    point = past.workdir / "runs" / RUNS[0] / "data"
    procfs.MOUNTS.write_text(f"66 27 254:0 /data {point} rw - ext4 /dev/vda rw\n")
    found = prune(place(past, TWO), past.clocks)
    assert names(found) == [RUNS[1]] and past.left() == [RUNS[0], *RUNS[2:]]
    assert [(each.run, each.needed) for each in found.spared] == [
        (RUNS[0], f"{point} is a mount point or another disk")
    ]
