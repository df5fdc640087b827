"""Which files of a folder are checkpoints, and which of them go."""

from pathlib import Path

from cluster.protocol.checkpoint_files import StoredCheckpoint, list_checkpoints, prune, remove_unfinished


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).touch()


def test_the_newest_comes_first_by_its_step_and_not_by_its_name(tmp_path: Path) -> None:
    write(tmp_path, "model-9.index", "model-10.index", "model-11.data-00000-of-00001", "model-12.index.unreadable")
    assert list_checkpoints(tmp_path) == [
        StoredCheckpoint(10, str(tmp_path / "model-10")),
        StoredCheckpoint(9, str(tmp_path / "model-9")),
    ]
    assert list_checkpoints(tmp_path / "gone") == []


def test_only_what_this_project_has_written_up_to_the_newest_is_removed(tmp_path: Path) -> None:
    write(tmp_path, "best-1.index", "model-1.index", "model-2.index", "model-3.index", "model-99.index", "notes")
    kept = prune(tmp_path, StoredCheckpoint(3, ""), 2)
    assert [each.step for each in kept] == [3, 2]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "best-1.index", "model-2.index", "model-3.index", "model-99.index", "notes"
    ]  # fmt: skip


def test_the_checkpoint_that_is_spared_stays_beside_those_that_are_kept(tmp_path: Path) -> None:
    write(tmp_path, *(f"model-{step}.index" for step in range(1, 6)))
    kept = prune(tmp_path, StoredCheckpoint(5, ""), 2, spared=2)
    assert [each.step for each in kept] == [each.step for each in list_checkpoints(tmp_path)] == [5, 4, 2]


def test_without_a_number_to_keep_nothing_is_removed(tmp_path: Path) -> None:
    write(tmp_path, "model-1.index", "model-2.index")
    assert [each.step for each in prune(tmp_path, StoredCheckpoint(2, ""), 0)] == [2, 1]
    assert len(list_checkpoints(tmp_path)) == 2


def test_what_no_index_belongs_to_is_unfinished_but_not_what_was_set_aside(tmp_path: Path) -> None:
    whole = ["model-1.index", "model-1.data-00000-of-00001"]
    aside = ["model-2.index.unreadable", "model-2.data-00000-of-00001"]
    write(tmp_path, *whole, *aside, "model-3.data-00000-of-00001", "model-1.index.tempstate7", "best-4.data-0-of-1")
    write(tmp_path, ".checkpoint.partial")  # of a chief that was killed while it wrote the list
    for folder in ("model-4.partial", "best-4.partial"):
        (tmp_path / folder).mkdir()
    write(tmp_path / "model-4.partial", "piece-0.index", "merged.data-00000-of-00002")
    remove_unfinished(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*whole, *aside, "best-4.data-0-of-1", "best-4.partial"]
    )
