"""The folder that a task works in: made once from what was shipped, left without what nobody changed."""

import os
from pathlib import Path
from typing import Dict

import pytest

from launch.agent.tasks.work_folder import LIST, fill, tidy, touch


@pytest.fixture
def shipped(tmp_path: Path) -> Path:
    folder = tmp_path / "code" / "HASH"
    for name in ("train.py", "lib/deep/part.py", "__pycache__/train.pyc", ".manifest"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "run.sh").write_text("run.sh")
    (folder / "run.sh").chmod(0o700)
    return folder


def inside(work: Path) -> Dict[str, str]:
    return {str(path.relative_to(work)): path.read_text() for path in work.rglob("*") if path.is_file()}


SHIPPED = {name: name for name in ("train.py", "lib/deep/part.py", "run.sh")}


def test_a_task_gets_a_copy_of_what_was_shipped_and_may_change_it(tmp_path: Path, shipped: Path) -> None:
    for task in ("worker.0", "worker.1"):
        fill(tmp_path / task, shipped)
        assert inside(tmp_path / task / "work") == SHIPPED
        assert os.access(str(tmp_path / task / "work" / "run.sh"), os.X_OK)
        with open(str(tmp_path / task / "work" / "train.py"), "r+") as file:
            file.write("other")
    assert (shipped / "train.py").read_text() == "train.py"
    assert sorted(path.name for path in (tmp_path / "worker.0").iterdir()) == ["work", LIST]


def test_what_an_earlier_agent_left_is_filled_up_and_not_overwritten(tmp_path: Path, shipped: Path) -> None:
    fill(tmp_path / "t", shipped)
    (tmp_path / "t" / "work" / "train.py").write_text("changed")
    fill(tmp_path / "t", shipped)  # as it is: nothing is looked at
    tidy(tmp_path / "t")
    assert inside(tmp_path / "t" / "work") == {"train.py": "changed"}
    fill(tmp_path / "t", shipped)
    assert inside(tmp_path / "t" / "work") == {**SHIPPED, "train.py": "changed"}


def test_an_agent_that_was_killed_while_it_copied_leaves_nothing_that_is_taken_for_whole(
    tmp_path: Path, shipped: Path
) -> None:
    fill(tmp_path / "t", shipped)
    (tmp_path / "t" / LIST).unlink()
    (tmp_path / "t" / "work" / "train.py").unlink()
    (tmp_path / "t" / ".copy").write_text("tra")
    fill(tmp_path / "t", shipped)
    assert inside(tmp_path / "t" / "work") == SHIPPED


def test_a_folder_in_which_nothing_was_changed_goes_and_nothing_beside_it(tmp_path: Path, shipped: Path) -> None:
    fill(tmp_path / "t", shipped)
    (tmp_path / "t" / "attempt_0.log").touch()
    tidy(tmp_path / "t")
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["attempt_0.log"]
    tidy(tmp_path / "t")  # once more does no harm


def test_a_task_without_shipped_code_has_an_empty_folder(tmp_path: Path) -> None:
    fill(tmp_path / "t", None)
    assert inside(tmp_path / "t" / "work") == {} and (tmp_path / "t" / "work").is_dir()


def test_a_list_that_a_task_overwrote_harms_nobody(tmp_path: Path, shipped: Path) -> None:
    for text in ("[1]", "{", "[" * 100_000, '{"../../code/HASH/train.py": 1}'):
        fill(tmp_path / "t", shipped)
        (tmp_path / "t" / LIST).write_text(text)
        touch(tmp_path / "t", 1e9)
        tidy(tmp_path / "t")
    assert (shipped / "train.py").exists()


def test_copies_are_touched_as_read_and_still_count_as_unchanged(tmp_path: Path, shipped: Path) -> None:
    fill(tmp_path / "t", shipped)
    touch(tmp_path / "t", 4e9)
    assert os.stat(str(tmp_path / "t" / "work" / "train.py")).st_atime == 4e9
    tidy(tmp_path / "t")
    assert not (tmp_path / "t" / "work").exists()
