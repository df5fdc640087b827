"""Which checkpoints a folder holds, told from the names of files."""

from pathlib import Path

from launch.agent.checkpoints import stored
from tests.support.agent.saved import save, save_in_pieces, steps


def test_checkpoints_are_in_the_order_of_their_steps_and_only_complete_ones_count(tmp_path: Path) -> None:
    save(tmp_path, 900, 1000)
    (tmp_path / "model-2000.index").touch()  # its data never arrived
    (tmp_path / "model-3000.index").touch()
    (tmp_path / "model-3000.data-00000-of-00001.tempstate123").touch()  # as it is being written
    (tmp_path / "model-final.index").touch()
    assert steps(tmp_path) == [900, 1000]
    assert [path.name for path in stored.checkpoints(tmp_path)[0].files()] == [
        "model-900.data-00000-of-00001", "model-900.index",
    ]  # fmt: skip


def test_a_folder_that_is_not_there_holds_none(tmp_path: Path) -> None:
    assert stored.checkpoints(tmp_path / "none") == []


def test_the_list_names_all_and_the_newest_as_the_one_to_restore(tmp_path: Path) -> None:
    save(tmp_path, 5, 10)
    stored.write_list(tmp_path)
    assert (tmp_path / "checkpoint").read_text().splitlines() == [
        'model_checkpoint_path: "model-10"',
        'all_model_checkpoint_paths: "model-5"',
        'all_model_checkpoint_paths: "model-10"',
    ]


def test_of_many_the_newest_are_kept(tmp_path: Path) -> None:
    save(tmp_path, 1, 2, 3)
    stored.prune(tmp_path, keep=2)
    assert steps(tmp_path) == [2, 3]
    assert len(list(tmp_path.iterdir())) == 4


def test_one_in_pieces_counts_when_all_of_them_are_there(tmp_path: Path) -> None:
    save_in_pieces(tmp_path, 10, 16)
    save_in_pieces(tmp_path, 20, 3)
    (tmp_path / "model-20.data-00001-of-00003").unlink()
    (found,) = stored.checkpoints(tmp_path)
    assert found.step == 10 and len(found.files()) == 17
    assert found.size() == sum(path.stat().st_size for path in tmp_path.glob("model-10.*"))


def test_all_pieces_of_one_go_together(tmp_path: Path) -> None:
    for step in (10, 20):
        save_in_pieces(tmp_path, step, 16)
    stored.prune(tmp_path, keep=1)
    assert steps(tmp_path) == [20] and len(list(tmp_path.iterdir())) == 17
