"""A new run starts from nothing, a resumed one from the newest checkpoint, and neither by accident."""

from pathlib import Path

import pytest

from launch.agent.folder import RunFolder
from launch.agent.resume import checkpoints, prepare

NOW = "a-20261120-120000"


def save(folder: Path, *steps: int) -> None:
    """Checkpoints as TensorFlow writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    for step in steps:
        (folder / f"model-{step}.index").write_text(f"index {step}")
        (folder / f"model-{step}.data-00000-of-00001").write_text(f"data {step}")


def run(workdir: Path, name: str = NOW, *steps: int) -> RunFolder:
    folder = RunFolder(workdir, name, "h")
    folder.create()
    if steps:
        save(folder.checkpoint, *steps)
    return folder


def test_checkpoints_are_in_the_order_of_their_steps_and_only_complete_ones_count(tmp_path: Path) -> None:
    save(tmp_path, 900, 1000)
    (tmp_path / "model-2000.index").touch()  # its data never arrived
    (tmp_path / "model-final.index").touch()
    assert checkpoints(tmp_path) == [(900, "model-900"), (1000, "model-1000")]


def test_a_new_run_in_its_own_folder_needs_nothing(tmp_path: Path) -> None:
    run(tmp_path, "a-20261119-120000", 5)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=False)
    assert not folder.checkpoint.exists()


def test_a_resumed_run_gets_the_newest_checkpoint_of_the_newest_run_that_has_one(tmp_path: Path) -> None:
    run(tmp_path, "a-20261117-120000", 99)
    run(tmp_path, "a-20261118-120000", 5, 10)
    run(tmp_path, "a-20261119-120000")  # failed before it saved any
    run(tmp_path, "b-20261119-120000", 77)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=True)
    assert checkpoints(folder.checkpoint) == [(10, "model-10")]
    assert (folder.checkpoint / "model-10.data-00000-of-00001").read_text() == "data 10"


def test_tensorflows_own_list_names_the_checkpoint_that_was_carried_over(tmp_path: Path) -> None:
    run(tmp_path, "a-20261119-120000", 10)
    folder = run(tmp_path)
    prepare(folder, "a", None, resume=True)
    listed = (folder.checkpoint / "checkpoint").read_text()
    assert listed == 'model_checkpoint_path: "model-10"\nall_model_checkpoint_paths: "model-10"\n'


def test_with_nothing_to_resume_the_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nothing to resume: no earlier run of a left a checkpoint on this host"):
        prepare(run(tmp_path), "a", None, resume=True)


def test_a_new_run_does_not_overwrite_the_checkpoints_of_a_named_folder(tmp_path: Path) -> None:
    save(tmp_path / "c", 5, 10)
    with pytest.raises(ValueError, match="holds a checkpoint of step 10; go on from it with --resume, or name another"):
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
