"""The chief writes what TensorBoard shows: when it is due, together with a step, and whatever the disk does."""

from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from cluster.job import Job
from cluster.optimizers import from_args
from cluster.protocol.heartbeat import Heartbeat
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.training import summaries
from cluster.training.callbacks import Step
from cluster.training.summaries import EventFile, Summaries
from tests.support.clocks import Clock
from tests.support.training.alone import train_alone


def events(folder: Path) -> List[Any]:
    """The events of the only file there."""
    (path,) = folder.iterdir()
    return list(tf.train.summary_iterator(str(path)))


def values(folder: Path) -> Dict[int, Dict[str, float]]:
    """Of each step, what was written by tag."""
    found: Dict[int, Dict[str, float]] = {}
    for event in events(folder):
        for value in event.summary.value:
            found.setdefault(event.step, {})[value.tag] = value.simple_value
    return found


def test_summaries_are_fetched_when_due_and_with_the_last_step_and_tell_the_rate(tmp_path: Path) -> None:
    clock = Clock(0.0)
    with tf.Graph().as_default():
        kept = Summaries(tmp_path / "s", {"norm": tf.constant(2.0)}, steps=100, global_batch_size=8, clock=clock)
    fetched: List[Any] = [[2.0]]
    assert kept.fetches(0) != []
    kept.note(None, Step(1, 0.5, 8), fetched)
    assert kept.fetches(1) == []
    kept.note(None, Step(2, 0.4, 8), [])
    clock.now = summaries.EVERY_S
    assert kept.fetches(10) != []
    kept.note(None, Step(11, 0.25, 8), fetched)
    assert kept.fetches(98) == [] and kept.fetches(99) != []
    rate = 10 / summaries.EVERY_S
    assert values(tmp_path / "s") == {
        1: {"loss": 0.5, "norm": 2.0},
        11: {"loss": 0.25, "norm": 2.0, "steps_per_second": rate, "examples_per_second": 8 * rate},
    }


def test_the_rate_of_a_step_that_stays_for_several_summaries_is_of_all_the_time(tmp_path: Path) -> None:
    """As within a window of local steps, whose steps are counted at its end."""
    clock = Clock(0.0)
    kept = Summaries(tmp_path / "s", {}, steps=100, global_batch_size=8, clock=clock)
    for step in (0, 0, 0, 16):
        kept.note(None, Step(step, 0.5, 8), [[]])
        clock.now += 10.0
    assert values(tmp_path / "s")[16]["steps_per_second"] == pytest.approx(16 / 30)


def test_a_run_that_was_restored_to_an_earlier_step_says_so(tmp_path: Path) -> None:
    kept = Summaries(tmp_path / "s", {}, steps=100, global_batch_size=8)
    for step in (5, 6, 3):
        kept.note(None, Step(step, 0.0, 8), [[]])
    found = [
        (event.step, event.session_log.status) for event in events(tmp_path / "s") if event.HasField("session_log")
    ]
    assert found == [(5, tf.SessionLog.START), (3, tf.SessionLog.START)]


def test_without_a_folder_nothing_is_fetched() -> None:
    assert Summaries(None, {"norm": 1}, steps=10, global_batch_size=8).fetches(0) == []


def test_a_folder_that_cannot_be_written_is_told_once_and_training_goes_on(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("")
    file = EventFile(tmp_path / "file" / "s")
    for step in range(3):
        file.write(step, {"loss": 1.0}, [], began=False)
    assert capsys.readouterr().out.count(f"summaries not written into {tmp_path}/file/s") == 1


def model(x: Any) -> Any:
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    tf.summary.scalar("own", tf.reduce_mean(x))
    with tf.name_scope(None):
        tf.summary.scalar("short", tf.reduce_mean(x))
    return w * x


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_run_has_loss_rate_learning_rate_gradient_norm_and_what_the_model_adds(
    tmp_path: Path, mode: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr(summaries, "EVERY_S", 0.0)
    batches = np.arange(1, 5, dtype=np.float32)[:, np.newaxis] * [[1, 1, 2, 2]]

    def inputs(task: Task, args: Dict[str, Any]) -> Any:
        return tf.data.Dataset.from_tensor_slices({"x": batches.astype(np.float32)})

    def evaluate(task: Task, args: Dict[str, Any]) -> Any:
        return inputs(task, args)

    job = Job(__file__, inputs, model, from_args, evaluate)
    args = {"optimizer": "sgd", "learning_rate": 0.1, "decay": {"kind": "exponential", "every": 1, "factor": 0.5}}
    outcome = train_alone(job, tmp_path, args, mode=mode, steps=4, batch_size=2, towers=2, clip_norm=0.5)
    assert outcome.succeeded, outcome
    found = values(tmp_path / "summaries")
    assert list(found) == [1, 2, 3, 4]
    assert [found[step]["learning_rate"] for step in found] == pytest.approx([0.1, 0.05, 0.025, 0.0125])
    assert [found[step]["gradient_norm"] for step in found] == pytest.approx([1.5, 3.0, 4.5, 6.0])
    assert [found[step]["tower_0/own"] for step in found] == [1, 2, 3, 4]
    assert found[1]["loss"] == pytest.approx(1.5)
    assert [found[step]["short"] for step in found] == [1, 2, 3, 4]
    expected = {"loss", "steps_per_second", "examples_per_second", "learning_rate", "gradient_norm", "tower_0/own"}
    assert {tag for tag in found[4] if not tag.startswith("step_time_ms/")} == {*expected, "short"}


def test_a_step_that_fetches_other_things_for_the_first_time_may_take_as_long_as_a_first_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    phases: List[str] = []
    turn = Heartbeat.begin_phase

    def noted(self: Heartbeat, phase: str, waited_s: float = 0.0) -> None:
        phases.append(phase)
        turn(self, phase, waited_s)

    def inputs(task: Task, args: Any) -> Any:
        return tf.data.Dataset.from_tensors({"x": tf.ones([task.batch_size])}).repeat()

    def model(x: Any) -> Any:
        return x * tf.get_variable("w", [], initializer=tf.ones_initializer())

    monkeypatch.setattr(Heartbeat, "begin_phase", noted)
    job = Job(__file__, inputs, model, lambda args: tf.train.GradientDescentOptimizer(0.1), None)
    assert train_alone(job, tmp_path, {}, steps=6, batch_size=2, towers=1).succeeded
    # With a summary, then without; the last one has a summary again.
    assert [phase for phase in phases if phase.endswith("step")][:4] == ["first step", "step", "first step", "step"]
    assert phases.count("first step") == 2
