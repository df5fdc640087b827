"""Checkpoints are files on the chief's host, as many as are kept."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator, List

import pytest

from cluster.checkpoints.saver import LAST_S, RETRY_S, Checkpoints
from cluster.errors import CheckpointError
from cluster.protocol.checkpoint_files import PARTIAL, list_checkpoints
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.task import Checkpoint
from tests.cluster.checkpoints.damage import flipped, truncated
from tests.support.clocks import Clock
from tests.support.waiting import PATIENCE_S

HERE = "/device:CPU:0"


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("w", [2], initializer=tf.zeros_initializer())
        session.run(tf.global_variables_initializer())
        yield session


def checkpoints(folder: Path, keep: int = 2, every_s: float = 0) -> Checkpoints:
    return Checkpoints(Checkpoint(keep=keep, every_s=every_s), tf.global_variables(), HERE, str(folder))


def kept(folder: Path) -> List[str]:
    return sorted(path.stem for path in folder.glob("*.index"))


def test_the_newest_checkpoint_comes_back(session: Any, tmp_path: Path) -> None:
    w = tf.global_variables()[0]
    written = checkpoints(tmp_path)
    for step in (1, 2):
        w.load([step, step], session)
        written.save_if_due(session, step)
    w.load([0, 0], session)
    found = checkpoints(tmp_path)
    assert found.restore(session) and found.step == 2
    assert session.run(w).tolist() == [2, 2]


def test_only_the_newest_are_kept_also_by_a_chief_that_started_again(session: Any, tmp_path: Path) -> None:
    first = checkpoints(tmp_path)
    for step in (1, 2, 3):
        first.save_if_due(session, step)
    assert kept(tmp_path) == ["model-2", "model-3"]
    second = checkpoints(tmp_path)
    second.open()
    second.adopt()
    second.save_if_due(session, 4)
    assert kept(tmp_path) == ["model-3", "model-4"]


def test_between_two_times_nothing_is_saved_but_the_last_step_always_is(session: Any, tmp_path: Path) -> None:
    written = checkpoints(tmp_path, every_s=3600)
    written.save_if_due(session, 1)
    assert kept(tmp_path) == []
    written.save_last(session, 2)
    assert kept(tmp_path) == ["model-2"]


def test_a_checkpoint_of_another_job_is_refused_with_its_path(session: Any, tmp_path: Path) -> None:
    checkpoints(tmp_path).save_last(session, 7)
    with tf.Graph().as_default(), tf.Session() as other:
        tf.get_variable("other", [2])
        with pytest.raises(CheckpointError, match=r"model-7: expected this job's variables, found others"):
            checkpoints(tmp_path).restore(other)


def test_without_a_folder_nothing_is_restored_or_saved(session: Any) -> None:
    none = Checkpoints(Checkpoint(every_s=0), tf.global_variables(), HERE, None)
    assert not none.restore(session)
    none.save_if_due(session, 1)
    none.save_last(session, 1)
    assert none.path is None


# -- what cannot be read


DATA, INDEX = "model-3.data-00000-of-00001", "model-3.index"


@pytest.mark.parametrize(
    "name, damage",
    [
        (DATA, flipped),
        (DATA, truncated),
        (DATA, Path.unlink),
        (INDEX, flipped),
        (INDEX, truncated),
        (INDEX, Path.touch),
    ],
)
def test_of_a_broken_newest_checkpoint_the_one_before_is_used_and_file_and_host_are_named(
    session: Any, tmp_path: Path, name: str, damage: Callable[[Path], None], capsys: Any
) -> None:
    w = tf.global_variables()[0]
    written = checkpoints(tmp_path)
    for step in (2, 3):
        w.load([step, step], session)
        written.save_now(session, step)
    if damage is Path.touch:
        (tmp_path / name).write_bytes(b"")
    else:
        damage(tmp_path / name)
    (tmp_path / "checkpoint").write_text("half a li")
    found = checkpoints(tmp_path)
    found.open()
    assert found.restore(session) and found.step == 2
    assert session.run(w).tolist() == [2, 2]
    fields = found.progress_fields()
    told = str(fields["passed_over"])
    assert (fields["passed_over_from"], fields["passed_over_to"], fields["checkpoint_problem"]) == (3, 2, None)
    assert f"{tmp_path}/model-3 (" in told and f"on {socket.gethostname()}" in told and "model-2" in told
    assert capsys.readouterr().out.splitlines() == [told]


def test_a_checkpoint_that_was_set_aside_counts_no_more_and_its_files_stay(session: Any, tmp_path: Path) -> None:
    written = checkpoints(tmp_path)
    for step in (2, 3):
        written.save_now(session, step)
    flipped(tmp_path / DATA)
    found = checkpoints(tmp_path)
    found.open()
    assert found.restore(session)
    passed = found.progress_fields()["passed_over"]
    found.save_now(session, 4)
    assert kept(tmp_path) == ["model-2", "model-4"]
    assert (tmp_path / DATA).exists() and (tmp_path / f"{INDEX}.unreadable").exists()
    fields = found.progress_fields()
    assert (fields["checkpoint_step"], fields["passed_over"]) == (4, passed)  # a save does not hide it
    later = checkpoints(tmp_path)
    later.open()
    assert (tmp_path / DATA).exists()
    later.save_now(session, 3)  # the step is reached again
    assert checkpoints(tmp_path).restore(session)


def test_when_none_can_be_read_training_does_not_begin_again_over_them(session: Any, tmp_path: Path) -> None:
    written = checkpoints(tmp_path)
    for step in (2, 3):
        written.save_now(session, step)
        flipped(tmp_path / f"model-{step}.data-00000-of-00001")
    with pytest.raises(CheckpointError) as raised:
        checkpoints(tmp_path).restore(session)
    told = str(raised.value)
    assert f"{tmp_path}/model-3 (" in told and f"{tmp_path}/model-2 (" in told and socket.gethostname() in told
    assert kept(tmp_path) == ["model-2", "model-3"]


def test_checkpoints_that_this_run_has_saved_and_that_are_gone_are_missed(session: Any, tmp_path: Path) -> None:
    written = checkpoints(tmp_path / "c")
    written.save_now(session, 2)
    shutil.rmtree(str(tmp_path / "c"))
    with pytest.raises(CheckpointError, match="expected the checkpoint of step 2, which this run has saved, found no"):
        written.restore(session)


# -- what cannot be written


def test_a_folder_that_cannot_be_written_is_told_once_and_again_when_it_works(
    session: Any, tmp_path: Path, capsys: Any
) -> None:
    folder = tmp_path / "in the way"
    folder.write_text("")
    written = checkpoints(folder)
    written.open()
    for step in (1, 2, 3):
        written.save_if_due(session, step)
    problem = f"checkpoints cannot be written into {folder} on {socket.gethostname()}: "
    assert str(written.problem).startswith(problem) and written.step is None
    assert capsys.readouterr().out.splitlines() == [written.problem]
    folder.unlink()
    written.save_if_due(session, 4)
    assert written.progress_fields() == {"checkpoint_step": 4, "checkpoint_problem": None}
    assert "checkpoints can be written again into" in capsys.readouterr().out


def test_a_checkpoint_stays_that_cannot_be_listed_once_older_ones_are_gone(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    written = checkpoints(tmp_path / "c", keep=1)
    written.save_now(session, 1)
    monkeypatch.setattr("cluster.protocol.checkpoint_files.write_list", full)
    written.save_now(session, 2)
    assert kept(tmp_path / "c") == ["model-2"] and "No space left" in str(written.problem)


def test_a_folder_that_was_removed_is_made_again(session: Any, tmp_path: Path) -> None:
    written = checkpoints(tmp_path / "c")
    written.save_now(session, 1)
    shutil.rmtree(str(tmp_path / "c"))
    written.save_now(session, 2)
    assert kept(tmp_path / "c") == ["model-2"]


def test_a_save_that_failed_is_tried_again_soon_however_rarely_saves_are_due(session: Any, tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    clock = Clock()
    settings = Checkpoint(every_s=3600)
    written = Checkpoints(settings, tf.global_variables(), HERE, str(tmp_path / "c"), clock)
    clock.now += 3600
    written.save_if_due(session, 1)
    (tmp_path / "c").unlink()
    written.save_if_due(session, 2)
    assert written.step is None
    clock.now += RETRY_S
    written.save_if_due(session, 3)
    assert written.step == 3


def test_the_final_checkpoint_is_tried_for_a_while(session: Any, tmp_path: Path) -> None:
    (tmp_path / "c").write_text("")
    clock = Clock()

    def wait(seconds: float) -> None:
        clock.now += seconds
        if clock.now >= 1000 + LAST_S / 2 and (tmp_path / "c").is_file() and mended:
            (tmp_path / "c").unlink()

    mended = False
    written = Checkpoints(Checkpoint(), tf.global_variables(), HERE, str(tmp_path / "c"), clock, wait)
    with pytest.raises(CheckpointError, match="the final checkpoint, step 9, cannot be written into"):
        written.save_last(session, 9)
    assert clock.now == 1000 + LAST_S
    mended, clock.now = True, 1000.0
    written.save_last(session, 9)
    assert written.step == 9 and kept(tmp_path / "c") == ["model-9"]


def test_a_chief_that_was_replaced_writes_nothing_more(session: Any, tmp_path: Path) -> None:
    first, second = checkpoints(tmp_path), checkpoints(tmp_path)
    first.open()
    first.save_now(session, 1)
    second.open()
    with pytest.raises(CheckpointError, match="expected no other writer than"):
        first.save_now(session, 2)
    assert kept(tmp_path) == ["model-1"]
    second.save_now(session, 2)


# -- what a save that is cut short leaves

SAVES = """
import resource, sys
from cluster.checkpoints.saver import Checkpoints
from cluster.runtime.tf_compat import tf
from cluster.task import Checkpoint
tf.get_variable("w", [1 << 20], initializer=tf.zeros_initializer())  # 4 MiB
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    saves = Checkpoints(Checkpoint(every_s=0, keep=2), tf.global_variables(), "/device:CPU:0", sys.argv[1])
    saves.open()
    saves.restore(session)
    if sys.argv[2] == "limited":
        saves.save_now(session, 1)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))
        saves.save_now(session, 2)
        saves.save_now(session, 3)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        saves.save_now(session, 4)
    step = saves.step or 0
    while sys.argv[2] == "forever":
        step += 1
        saves.save_now(session, step)
"""


def saving(folder: Path, how: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", SAVES, str(folder), how], stdout=subprocess.PIPE, universal_newlines=True
    )


def test_a_disk_with_no_room_is_told_once_with_its_reason_and_nothing_is_left_on_it(tmp_path: Path) -> None:
    process = saving(tmp_path, "limited")
    told, _ = process.communicate(timeout=PATIENCE_S)
    where = f"{tmp_path} on {socket.gethostname()}"
    assert told.splitlines() == [
        f"checkpoints cannot be written into {where}: File too large",
        f"checkpoints can be written again into {where}, since step 4",
    ]
    assert kept(tmp_path) == ["model-1", "model-4"]
    assert len([path for path in tmp_path.iterdir() if path.name.startswith("model")]) == 4


def test_a_chief_killed_while_it_saves_leaves_checkpoints_that_can_be_read_and_the_next_clears_up(
    session: Any, tmp_path: Path
) -> None:
    process = saving(tmp_path, "forever")
    wait_for("a save to be under way", lambda: bool(kept(tmp_path) and unfinished(tmp_path)), PATIENCE_S, poll_s=0.001)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    newest = list_checkpoints(tmp_path)[0]
    assert tf.train.load_checkpoint(newest.path).get_tensor("w").sum() == 0
    (tmp_path / "model-900.data-00000-of-00001").touch()  # of which the index never came
    checkpoints(tmp_path).open()
    assert not unfinished(tmp_path) and list_checkpoints(tmp_path)[0] == newest
    assert not list(tmp_path.glob("model-900*"))


def unfinished(folder: Path) -> List[Path]:
    return list(folder.glob(f"*{PARTIAL}"))
