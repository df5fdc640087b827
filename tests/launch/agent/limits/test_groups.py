"""The control groups of a run on a host are found again by the record of their place, and by their names."""

from pathlib import Path

from launch.agent import leftovers
from launch.agent.limits import control_groups as groups
from launch.agent.state.run_folder import RunFolder


def folder_of(workdir: Path, host: str = "h") -> RunFolder:
    folder = RunFolder(workdir, "r-1", host)
    folder.create()
    return folder


def test_a_run_finds_its_own_groups_and_removes_those_without_a_process(tmp_path: Path) -> None:
    place, run, other = tmp_path / "cg", folder_of(tmp_path), folder_of(tmp_path, "h2")
    empty, full, foreign = (place / groups.name(each, "ps:0.0.1") for each in (run, run, other))
    full = full.with_name(groups.name(run, "ps:1.0.2"))
    for group in (empty, full / "a process", foreign):
        group.mkdir(parents=True)
    assert groups.left(run) == []  # nothing on record
    groups.write_place(run, groups.GroupPlace(place, groups.V2))
    assert groups.left(run) == [empty, full]
    assert leftovers.look(run).groups == [str(empty), str(full)]
    leftovers.end(run)
    assert groups.left(run) == [full] and foreign.exists()


def test_a_record_that_a_power_cut_has_left_in_pieces_names_no_groups(tmp_path: Path) -> None:
    run = folder_of(tmp_path)
    (run.own / groups.RECORD).write_text("")
    assert groups.left(run) == []


def test_groups_are_known_by_the_beginning_of_their_names(tmp_path: Path) -> None:
    run, place = folder_of(tmp_path, "a"), tmp_path / "cg"
    groups.write_place(run, groups.GroupPlace(place, groups.V2))
    assert groups.left(run) == []  # the place is gone
    for name in ("launch.r-1@a@ps:0.0.1", "launch.r-1@a.b@ps:0.0.1", "user.slice"):
        (place / name).mkdir(parents=True)
    assert groups.left(run) == [place / "launch.r-1@a@ps:0.0.1"]
