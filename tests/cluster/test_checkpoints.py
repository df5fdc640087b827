"""Checkpoints are one file each on the chief's host, as many as are kept."""

from pathlib import Path
from typing import Any, Iterator, List

import pytest

from cluster.checkpoints import Checkpoints
from cluster.engine import tf
from cluster.errors import TrainingError
from cluster.task import Checkpoint

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
        with pytest.raises(TrainingError, match=r"model-7: expected this job's variables, found others"):
            checkpoints(tmp_path).restore(other)


def test_without_a_folder_nothing_is_restored_or_saved(session: Any) -> None:
    none = Checkpoints(Checkpoint(every_s=0), tf.global_variables(), HERE, None)
    assert not none.restore(session)
    none.save_if_due(session, 1)
    none.save_last(session, 1)
    assert none.path is None
