"""A new run starts from nothing, a resumed one from the newest checkpoint, and neither by accident."""

from pathlib import Path
from typing import Any, List, Optional, Tuple

import pytest

from cluster.protocol.checkpoint_files import BEST, OWNER, list_checkpoints
from cluster.protocol.typed_json import to_values
from launch.agent.checkpoints.resume import continued, held, prepare, receive, source
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import generation, note_generation
from launch.agent.wire.run_request import Wanted
from launch.agent.wire.verb_requests import HandoverRequest, HeldRequest, RunReference
from launch.status.run_history import RunHistory
from tests.support.agent.saved import save, save_in_pieces, steps
from tests.support.launch.statuses import history, status

NOW = "a-20261120-120000"


def run(workdir: Path, name: str = NOW, *steps: int) -> RunFolder:
    folder = RunFolder(workdir, name, "h")
    folder.create()
    if steps:
        save(folder.checkpoint, *steps)
    return folder


def test_a_new_run_in_its_own_folder_needs_nothing(tmp_path: Path) -> None:
    run(tmp_path, "a-20261119-120000", 5)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=False)
    assert not folder.checkpoint.exists()


def test_a_resumed_run_gets_the_checkpoints_of_the_newest_run_that_has_any(tmp_path: Path) -> None:
    run(tmp_path, "a-20261117-120000", 99)
    run(tmp_path, "a-20261118-120000", 5, 10)
    run(tmp_path, "a-20261119-120000")  # failed before it saved any
    run(tmp_path, "b-20261119-120000", 77)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=True)
    assert steps(folder.checkpoint) == [5, 10]  # the older one, should the newest be unreadable
    assert '"model-5"' in (folder.checkpoint / "checkpoint").read_text()
    assert (folder.checkpoint / "model-10.data-00000-of-00001").read_text() == "data 10"


def test_what_is_left_of_a_newer_checkpoint_is_carried_over_too_so_that_the_chief_names_it(tmp_path: Path) -> None:
    earlier = run(tmp_path, "a-20261119-120000", 5, 10)
    (earlier.checkpoint / "model-10.data-00000-of-00001").unlink()
    for wanted in (None, Wanted(earlier.run, 5)):
        folder = run(tmp_path, NOW if wanted is None else "a-20261121-120000")
        prepare(folder, "a", None, resume=True, wanted=wanted)
        assert steps(folder.checkpoint) == [5]
        assert [each.step for each in list_checkpoints(folder.checkpoint)] == [10, 5]
        folder.own.rename(folder.own.with_name("gone"))


def test_all_pieces_of_a_checkpoint_are_carried_over(tmp_path: Path) -> None:
    save_in_pieces(run(tmp_path, "a-20261119-120000").checkpoint, 10, 16)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=True)
    assert steps(folder.checkpoint) == [10] and len(list(folder.checkpoint.glob("model-10.data-*-of-00016"))) == 16


def test_tensorflows_own_list_names_the_checkpoint_that_was_carried_over(tmp_path: Path) -> None:
    run(tmp_path, "a-20261119-120000", 10)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=True)
    listed = (folder.checkpoint / "checkpoint").read_text()
    assert listed == 'model_checkpoint_path: "model-10"\nall_model_checkpoint_paths: "model-10"\n'


def test_the_record_of_the_best_checkpoint_goes_with_the_checkpoints_and_is_a_file_of_its_own(tmp_path: Path) -> None:
    earlier = run(tmp_path, "a-20261119-120000", 5, 10)
    (earlier.checkpoint / BEST).write_text("{}")
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=True)
    assert (folder.checkpoint / BEST).read_text() == "{}"
    assert not (folder.checkpoint / BEST).samefile(earlier.checkpoint / BEST)  # it is written again


def test_with_nothing_to_resume_the_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to resume: no earlier run of a left a checkpoint on this host"):
        prepare(run(tmp_path), "a", None, resume=True)


def test_a_new_run_does_not_overwrite_the_checkpoints_of_a_named_folder(tmp_path: Path) -> None:
    save(tmp_path / "c", 5, 10)
    with pytest.raises(
        ValueError, match="holds a checkpoint of step 10; continue from it with --resume, or name another"
    ):
        prepare(run(tmp_path / "w"), "a", str(tmp_path / "c"), resume=False)


def test_a_named_folder_is_resumed_in_place(tmp_path: Path) -> None:
    save(tmp_path / "c", 5)
    folder = run(tmp_path / "w")
    prepare(folder, "a", str(tmp_path / "c"), resume=True)
    assert not folder.checkpoint.exists()


def test_a_named_folder_without_a_checkpoint_cannot_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nothing to resume: train.checkpoint.dir .*/c holds no complete checkpoint"):
        prepare(run(tmp_path / "w"), "a", str(tmp_path / "c"), resume=True)


def test_a_named_folder_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    save(tmp_path / "c", 5)
    with pytest.raises(ValueError, match=r"train.checkpoint.dir ~/c holds a checkpoint of step 5"):
        prepare(run(tmp_path / "w"), "a", "~/c", resume=False)


def holding(tmp_path: Path, directory: Optional[str] = None) -> List[Tuple[Any, int]]:
    """What a host says that it holds."""
    asked = HeldRequest(RunReference("a", "h", str(tmp_path)), directory)
    return [(each["run"], each["step"]) for each in held(asked)["held"]]


def test_a_host_tells_the_newest_of_the_newest_run_its_own_or_a_copy(tmp_path: Path) -> None:
    save(run(tmp_path, "a-20261118-120000", 3).replica, 4)
    save(run(tmp_path, "a-20261119-120000", 5).replica, 10)
    run(tmp_path)
    assert holding(tmp_path) == [("a-20261119-120000", 10)]


def test_a_host_tells_also_of_the_run_before_that_came_furthest(tmp_path: Path) -> None:
    run(tmp_path, "a-20261116-120000", 40)
    run(tmp_path, "a-20261117-120000", 50, 60)
    run(tmp_path, "a-20261118-120000", 20)
    run(tmp_path, "a-20261119-120000", 10)
    assert holding(tmp_path) == [("a-20261119-120000", 10), ("a-20261117-120000", 60)]


def test_the_newest_run_is_resumed_though_an_older_one_was_named_by_a_clock_that_was_ahead(tmp_path: Path) -> None:
    note_generation(run(tmp_path, "a-20270101-000000", 50), 7)
    note_generation(run(tmp_path, "a-20261119-120000", 100), 8)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=True)
    assert steps(folder.checkpoint) == [100]


def test_a_host_that_holds_none_says_so(tmp_path: Path) -> None:
    assert holding(tmp_path) == []


def test_copies_of_a_named_folder_count_where_that_folder_is_resumed(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    save(tmp_path / "c", 5)
    earlier = run(tmp_path, "a-20261119-120000")
    earlier.write("plan.json", {"checkpoint_dir": directory})
    save(earlier.replica, 10)
    assert holding(tmp_path, directory) == [(None, 5), ("a-20261119-120000", 10)]
    assert holding(tmp_path) == []


def test_a_copy_is_put_into_the_named_folder(tmp_path: Path) -> None:
    directory = str(tmp_path / "c")
    earlier = run(tmp_path, "a-20261119-120000")
    earlier.write("plan.json", {"checkpoint_dir": directory})
    save(earlier.replica, 10)
    prepare(run(tmp_path), "a", directory, resume=True, wanted=Wanted(earlier.run, 10))
    assert steps(tmp_path / "c") == [10]


def test_a_run_does_not_find_the_note_of_the_run_before_it_in_its_folder(tmp_path: Path) -> None:
    """Its second attempt would stop, where the first had died before it took the folder."""
    save(tmp_path / "c", 5)
    (tmp_path / "c" / OWNER).write_text("{}")
    prepare(run(tmp_path), "a", str(tmp_path / "c"), resume=True)
    assert steps(tmp_path / "c") == [5] and not (tmp_path / "c" / OWNER).exists()


def test_a_run_goes_on_from_the_very_checkpoint_that_it_is_told(tmp_path: Path) -> None:
    run(tmp_path, "a-20261118-120000", 5, 10)
    run(tmp_path, "a-20261119-120000", 99)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=True, wanted=Wanted("a-20261118-120000", 5))
    assert steps(folder.checkpoint) == [5]


def test_a_checkpoint_that_is_gone_meanwhile_is_named(tmp_path: Path) -> None:
    run(tmp_path, "a-20261118-120000", 5)
    with pytest.raises(ValueError, match="the checkpoint of step 10 of a-20261118-120000 is gone"):
        prepare(run(tmp_path), "a", None, resume=True, wanted=Wanted("a-20261118-120000", 10))


def test_what_another_host_gives_is_found_as_if_it_had_been_copied_here(tmp_path: Path) -> None:
    wanted = Wanted("a-20261119-120000", 10)
    asked = HandoverRequest(RunReference("a", "h", str(tmp_path)), None, wanted, 7, "h:1", "token", keep=5)
    save(receive(asked), 10)
    assert generation(RunFolder(tmp_path, "a-20261119-120000", "h")) == 7  # though this host had no part in it
    assert holding(tmp_path) == [(wanted.run, wanted.step)]
    assert source(asked).step == 10


def test_a_resumed_run_continues_the_curve_of_the_run_whose_checkpoint_it_takes(tmp_path: Path) -> None:
    curves = [history([(5 * number, 1.0 / number)]) for number in (1, 2)]
    for day, curve in zip((18, 19), curves):
        run(tmp_path, f"a-202611{day}-120000", 5).write("status.json", to_values(status(history=curve)))
    folder = run(tmp_path)
    assert continued(folder, "a", None, None) == curves[1] == continued(folder, "a", None, Wanted(None, 5))
    assert continued(folder, "a", None, Wanted("a-20261118-120000", 5)) == curves[0]
    assert continued(folder, "a", None, Wanted("of-another-host", 5)) == RunHistory()


def test_an_agent_that_is_killed_while_it_writes_leaves_the_curve_of_the_write_before(tmp_path: Path) -> None:
    earlier, curve = run(tmp_path, "a-20261119-120000"), history([(5, 1.0)])
    earlier.write("status.json", to_values(status(history=curve)))
    text = (earlier.own / "status.json").read_bytes()
    folder = run(tmp_path)
    for cut in range(len(text)):
        (earlier.own / ".status.json.partial").write_bytes(text[:cut])
        assert continued(folder, "a", None, None) == curve
