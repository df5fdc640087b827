"""A list of checkpoints on a host is reported with the checkpoint whose values are not there."""

import os
import threading
from pathlib import Path
from typing import Any, Dict

import pytest

from launch.agent.tasks.saved_checkpoints import DEEPEST, MOST_FOLDERS, MOST_FOUND, SavedCheckpoints
from tests.support.agent.requested import task_request
from tests.support.waiting import eventually


class Program:
    """A worker in a working folder, which other tasks share."""

    def __init__(self, folder: Path, *words: str, task: str = "worker:0", kind: str = "work"):
        self.work = folder / kind
        self.work.mkdir()
        request = task_request(task, argv=("python", *words), folder=str(self.work))
        self.saved = SavedCheckpoints({task: request}, lambda text: text.replace("secret", "(secret)"))

    def save(self, folder: str, newest: str, *files: str) -> Path:
        """Writes a list, and files beside it."""
        at = self.work / folder
        at.mkdir(parents=True, exist_ok=True)
        for name in files:
            (at / name).touch()
        path = at / "checkpoint"
        path.write_text(f'model_checkpoint_path: "{newest}"\nall_model_checkpoint_paths: "m-1"\n')
        os.utime(str(path), ns=(2 * 10**18, 2 * 10**18))  # later than any start
        return path

    def look(self) -> Dict[str, str]:
        return self.saved.look().get("worker:0", {})


@pytest.mark.parametrize(
    ("files", "missing"),
    [
        (["m-2.index", "m-2.data-00000-of-00001"], ""),
        (["m-2.index", "m-2.data-00000-of-00002", "m-2.data-00001-of-00002"], ""),
        (["m-2"], ""),
        (["m-2.meta"], "m-2"),
        (["m-2.index", "m-2.data-00001-of-00002"], "m-2"),
        (["m-2.data-00000-of-00001"], "m-2"),
        (["m-20.index", "m-20.data-00000-of-00001"], "m-2"),
    ],
)
def test_a_checkpoint_is_whole_with_its_index_and_all_its_data(files: Any, missing: str, tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.save("logdir", "m-2", *files)
    assert program.look() == {"logdir/checkpoint": missing}


def test_lists_are_found_some_levels_down_and_where_the_command_names_their_folder(tmp_path: Path) -> None:
    program = Program(tmp_path, f"--train_dir={tmp_path}/shared/x", str(tmp_path / "plain"), "up/../other")
    for folder in (".", "a/b/c", "a/b/c/d", f"{tmp_path}/shared/x", f"{tmp_path}/plain", f"{tmp_path}/elsewhere"):
        program.save(folder, "m")
    assert DEEPEST == 3
    assert set(program.look()) == {
        "checkpoint", "a/b/c/checkpoint", f"{tmp_path}/shared/x/checkpoint", f"{tmp_path}/plain/checkpoint",
    }  # fmt: skip


def test_a_path_of_its_own_in_the_list_counts_and_other_file_systems_do_not(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.save("a", f"{tmp_path}/away/m-1")
    program.save("b", "hdfs://n/m-1")
    assert program.look() == {"a/checkpoint": ""}  # a folder that cannot be read proves nothing
    (tmp_path / "away").mkdir()
    assert program.look() == {"a/checkpoint": "m-1"}


def test_a_list_from_before_or_of_other_content_is_none(tmp_path: Path) -> None:
    program = Program(tmp_path)
    os.utime(str(program.save("shipped", "m")), (1.0, 1.0))
    for name, text in (("other", "epoch 3"), ("empty", "")):
        (program.work / name).mkdir()
        (program.work / name / "checkpoint").write_text(text)
    (program.work / "fifo").mkdir()
    os.mkfifo(str(program.work / "fifo" / "checkpoint"))
    (program.work / "checkpoint").mkdir()
    os.symlink(str(tmp_path), str(program.work / "link"))
    assert program.look() == {}


def test_a_program_with_many_folders_and_odd_names_costs_little_and_shows_no_secret(tmp_path: Path) -> None:
    program = Program(tmp_path)
    for index in range(MOST_FOLDERS + 50):
        (program.work / f"f{index:04}").mkdir()
    program.save("f0000", "\x1b[1m-secret")
    for index in range(1, MOST_FOUND + 5):
        program.save(f"f{index:04}", "m")
    program.save(f"f{MOST_FOLDERS + 10:04}", "m")
    found = program.look()
    assert found["f0000/checkpoint"] == "-(secret)" and len(found) == MOST_FOUND
    assert f"f{MOST_FOLDERS + 10:04}/checkpoint" not in found


@pytest.mark.parametrize(("task", "kind"), [("ps:0", "work"), ("evaluator:0", "work"), ("worker:0", "code")])
def test_jobs_and_tasks_that_do_not_train_are_not_looked_at(task: str, kind: str, tmp_path: Path) -> None:
    program = Program(tmp_path, task=task, kind=kind)
    program.save("logdir", "m")
    assert program.saved.look() == {} and task not in program.saved


def test_a_file_server_that_hangs_holds_up_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, answers = Program(tmp_path), threading.Event()
    program.save("logs", "m-2")
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: answers.wait(60) and listed(folder))
    assert [program.saved.newest() for _ in range(3)] == [{}, {}, {}] == [program.saved.newest(wait_s=0.05)] * 3
    assert [each.name for each in threading.enumerate()].count("saved checkpoints") == 1
    answers.set()
    eventually("the look", lambda: program.saved.newest() == {"worker:0": {"logs/checkpoint": "m-2"}})


def test_what_was_saved_last_is_known_at_the_end(tmp_path: Path) -> None:
    program = Program(tmp_path)
    program.saved.newest()
    program.save("logs", "m-2")
    assert program.saved.newest(wait_s=60) == {"worker:0": {"logs/checkpoint": "m-2"}}
