"""Which run of a name a verb means: one that lives, else the one that began last, whatever clocks say."""

import os
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest

from launch.agent.linux.processes import inspect
from launch.agent.state import boot_unit, locks, process_records, runs
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.verb_requests import RunReference

FIRST, SECOND, THIRD = "a-20261122-235900", "a-20261122-110000", "a-20261122-230000"  # as three clocks named them


def make_runs(workdir: Path, *names: str, host: str = "h") -> None:
    for name in names:
        RunFolder(workdir, name, host).create()


def make_run(workdir: Path, name: str, generation: int, host: str = "h") -> RunFolder:
    folder = RunFolder(workdir, name, host)
    folder.create()
    runs.note_generation(folder, generation)
    return folder


def found(workdir: Path, name: str = "a", host: str = "h") -> List[str]:
    return [folder.run for folder in runs.runs(workdir, name, host)]


def find(workdir: Path, run: Optional[str] = None) -> Dict[str, Any]:
    return runs.find(RunReference("a", "h", str(workdir), run))


def test_the_runs_of_a_name_are_newest_first_and_no_other_names_are_among_them(tmp_path: Path) -> None:
    make_runs(
        tmp_path, "a-20261120-155902", "a-20261121-000000", "a-20261120-160000", "a-b-20261122-000000", "a", "a-b"
    )
    assert found(tmp_path) == ["a-20261121-000000", "a-20261120-160000", "a-20261120-155902"]
    assert found(tmp_path, "a-b") == ["a-b-20261122-000000"]


def test_a_name_that_ends_like_a_time_is_no_run_of_the_shorter_name(tmp_path: Path) -> None:
    make_runs(tmp_path, "a-20261120-155902-20261121-000000")
    assert found(tmp_path) == []
    assert found(tmp_path, "a-20261120-155902") == ["a-20261120-155902-20261121-000000"]


def test_a_run_that_this_host_had_no_part_in_is_not_its_run(tmp_path: Path) -> None:
    make_runs(tmp_path, "a-20261120-155902", host="other")
    assert found(tmp_path) == []


def test_where_nothing_ever_ran_there_are_no_runs(tmp_path: Path) -> None:
    assert found(tmp_path / "none", "a") == []


# -- which is the newest


def test_the_run_of_the_highest_generation_is_first_whatever_its_name_is(tmp_path: Path) -> None:
    for generation, name in enumerate((FIRST, SECOND, THIRD), start=7):
        make_run(tmp_path, name, generation)
    assert found(tmp_path) == [THIRD, SECOND, FIRST]
    assert [folder.run for folder in runs.every_run(tmp_path)] == [THIRD, SECOND, FIRST]


def test_a_run_that_holds_its_name_is_first_whatever_its_generation_is(tmp_path: Path) -> None:
    make_run(tmp_path, SECOND, 99)
    with locks.hold(make_run(tmp_path, FIRST, 1), "a", "hosts.yaml"):
        assert found(tmp_path) == [FIRST, SECOND]
    assert found(tmp_path) == [SECOND, FIRST]


def test_a_run_whose_lock_somebody_has_removed_is_still_known_to_live_by_its_agent(tmp_path: Path) -> None:
    make_run(tmp_path, SECOND, 99)
    me = inspect(os.getpid())
    assert me is not None
    process_records.write_agent(make_run(tmp_path, FIRST, 1), me, me)
    assert found(tmp_path) == [FIRST, SECOND]


def test_runs_without_a_generation_are_in_the_order_of_their_names_whatever_the_age_of_their_files(
    tmp_path: Path,
) -> None:
    for moment, name in enumerate((FIRST, THIRD, SECOND)):
        folder = RunFolder(tmp_path, name, "h")
        folder.create()
        folder.write("plan.json", {})
        os.utime(str(folder.own / "plan.json"), (1_790_000_000 + moment, 1_790_000_000 + moment))
    assert found(tmp_path) == [FIRST, THIRD, SECOND]
    assert find(tmp_path)["highest"] == runs.stamp(FIRST)


@pytest.mark.parametrize("text", ["", "{", '{"generation": "x"}', "[]"])
def test_a_record_in_pieces_keeps_no_run_from_being_found(text: str, tmp_path: Path) -> None:
    make_run(tmp_path, FIRST, 1)
    for name in (runs.GENERATION, process_records.AGENT, "plan.json"):
        (RunFolder(tmp_path, FIRST, "h").own / name).write_text(text)
    assert found(tmp_path) == [FIRST]


# -- what the launcher is told


def test_a_host_tells_which_run_is_meant_who_leads_it_and_the_highest_generation_of_any(tmp_path: Path) -> None:
    make_run(tmp_path, SECOND, 99)
    with locks.hold(make_run(tmp_path, FIRST, 1), "a", "hosts.yaml"):
        RunFolder(tmp_path, FIRST, "h").write(
            "plan.json", {"lead": {"host": "gpu01"}, "run_plan": {"hosts": ["gpu01", "h"]}}
        )
        told = find(tmp_path)
    assert told == {
        "run": FIRST, "generation": 1, "lives": True, "lead": "gpu01", "hosts": ["gpu01", "h"], "highest": 99,
        "taken": False, "boot_obstacle": boot_unit.obstacle(),
    }  # fmt: skip


def test_a_host_without_a_run_of_the_name_tells_of_none(tmp_path: Path) -> None:
    told = find(tmp_path)
    assert told == {"run": None, "highest": 0, "taken": False, "boot_obstacle": boot_unit.obstacle()}


def test_a_host_tells_whether_the_name_that_a_run_wants_is_taken(tmp_path: Path) -> None:
    make_run(tmp_path, FIRST, 1)
    make_run(tmp_path, SECOND, 2)
    assert [find(tmp_path, run)["taken"] for run in (FIRST, SECOND, "a-20300101-000000")] == [True, True, False]


# -- the end of a run for good


def end(workdir: Path, run: Optional[str] = None) -> None:
    runs.end_for_good(RunReference("a", "h", str(workdir), run), "launch down")


def refusal(folder: RunFolder, follows: Optional[str] = None) -> Optional[str]:
    try:
        runs.refuse_ended(folder, follows)
    except runs.EndedForGood as error:
        return str(error)
    return None


def test_neither_a_run_that_a_user_has_ended_starts_here_nor_one_that_would_succeed_it(tmp_path: Path) -> None:
    first, second = make_run(tmp_path, FIRST, 1), RunFolder(tmp_path, SECOND, "h")
    assert refusal(second, FIRST) is None
    end(tmp_path)
    assert refusal(first) == f"{FIRST} was ended here by launch down"
    assert refusal(second, FIRST) == f"{FIRST} was ended here by launch down, so no run succeeds it"
    assert refusal(second) is None


def test_a_run_that_appears_while_the_one_before_is_ended_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, note = make_run(tmp_path, FIRST, 1), RunFolder.note
    made: List[RunFolder] = []

    def and_then_another(folder: RunFolder, *values: Any, **named: Any) -> bool:
        written = note(folder, *values, **named)
        if not made:
            made.append(make_run(tmp_path, SECOND, 2))
        return written

    monkeypatch.setattr(RunFolder, "note", and_then_another)
    end(tmp_path)
    assert refusal(first) and refusal(made[0])


def test_a_full_disk_has_room_for_the_end_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = make_run(tmp_path, FIRST, 1)
    monkeypatch.setattr(RunFolder, "note", lambda *_, **__: False)
    end(tmp_path)
    assert refusal(first) == f"{FIRST} was ended here by a user"


def test_the_end_of_a_named_run_is_recorded_in_that_run_alone(tmp_path: Path) -> None:
    first, second = make_run(tmp_path, FIRST, 1), make_run(tmp_path, SECOND, 2)
    end(tmp_path, FIRST)
    assert refusal(first) and refusal(second) is None
