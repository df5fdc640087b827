"""An evaluator follows the run's checkpoints, without a filesystem that it shares with the chief."""

from pathlib import Path
from typing import Any, Dict, List

import numpy as np
import pytest

from cluster.checkpoints.finished_files import Noticeboard
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.job import Job
from cluster.runtime.devices import worker_device
from cluster.runtime.tf_compat import tf
from cluster.serving.evaluator import EvaluationGraph
from cluster.sharing.variables import Sharing
from cluster.task import Task, Train
from cluster.variables.masters import saved_variables
from jobs import digits
from tests.cluster.checkpoints.test_streamed_saver import grown
from tests.cluster.steps.test_sync_worker import servers_of
from tests.support.training.processes import Cluster
from tests.support.waiting import eventually


def measured(checkpoint: str) -> Dict[str, float]:
    """Loss and accuracy on the held-out digits of a checkpoint, by a plain program."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.data.make_one_shot_iterator(digits.evaluate(Task("worker", 0, {}), {})).get_next()
        loss, metrics = digits.model(**batch, args={})
        tf.train.Saver(tf.trainable_variables()).restore(session, checkpoint)
        losses, hits = session.run([loss, metrics["accuracy"]])  # they are one batch
        return {"loss": float(np.mean(losses)), "accuracy": float(np.mean(hits))}


def test_a_checkpoint_is_worth_what_a_plain_program_finds_and_the_last_step_ends_an_evaluator_with_success(
    tmp_path: Path,
) -> None:
    last = 20
    train = {"steps": 1000000, "batch_size": 16, "checkpoint": {"every_s": 1, "keep": 1000}}
    with Cluster(tmp_path, "digits", workers=1, evaluator=1) as cluster:
        cluster.start_all(train)
        eventually("a second checkpoint is measured", lambda: cluster.step("evaluator") > 0)
        first = max(last, cluster.step("evaluator"))
        eventually("a later checkpoint is measured", lambda: cluster.step("evaluator") > first)
        told = cluster.progress("evaluator", 0)
        cluster.kill("evaluator", 0)
        cluster.start("evaluator", 0, {**train, "steps": last})  # which the chief, that goes on, has passed
        assert cluster.exit_code("evaluator", 0) == 0
        outcome = cluster.outcome("evaluator", 0)
    assert told is not None
    found = measured(str(tmp_path / "checkpoint" / f"model-{told.step}"))
    assert told.metrics == pytest.approx(found, rel=1e-4)
    assert [path.name for path in (tmp_path / "evaluator.0").iterdir() if "model" in path.name] == []
    assert outcome is not None and outcome.succeeded and outcome.metrics["accuracy"] > 0.1


def test_an_evaluator_of_a_job_without_evaluate_is_refused(tmp_path: Path) -> None:
    with Cluster(tmp_path, "tests.support.training.jobs.table", workers=1, evaluator=1) as cluster:
        cluster.start("evaluator", 0, {"steps": 1})
        assert cluster.exit_code("evaluator", 0) == 1
        outcome = cluster.outcome("evaluator", 0)
    assert outcome is not None and outcome.retry is False
    assert "expected a function evaluate for the evaluator" in str(outcome.cause)


LONG = """
import os, time

import numpy as np
import tensorflow.compat.v1 as tf

from jobs.polynomial import inputs, model, optimizer


def evaluate(task, args):
    def batches():
        open(os.path.join(args["folder"], "begun"), "w").close()
        until = time.monotonic() + 60
        while not os.path.exists(os.path.join(args["folder"], "go")) and time.monotonic() < until:
            time.sleep(0.05)
        yield np.ones(4, np.float32), np.ones(4, np.float32)

    batches = tf.data.Dataset.from_generator(batches, (tf.float32, tf.float32), ([4], [4]))
    return batches.map(lambda x, y: {"x": x, "y": y})
"""


def test_an_evaluator_that_is_is_ending_ends_what_it_measures(tmp_path: Path) -> None:
    job = tmp_path / "long.py"
    job.write_text(LONG)
    train = {"steps": 1000000, "batch_size": 4, "checkpoint": {"every_s": 1}}
    with Cluster(tmp_path, str(job), workers=1, evaluator=1) as cluster:
        cluster.start_all(train, {"folder": str(tmp_path)})
        eventually("a measurement has begun", (tmp_path / "begun").exists)
        cluster.running["evaluator", 0].terminate()
        (tmp_path / "go").touch()
        assert cluster.exit_code("evaluator", 0) == 0, cluster.log("evaluator", 0)
        outcome = cluster.outcome("evaluator", 0)
    assert outcome is not None and outcome.succeeded and outcome.step and "loss" in outcome.metrics


# -- with a chief inside this process


HOST = worker_device("worker", 0)
PIECE = 8 << 20  # bytes


class Chief:
    """Saves a model's variables in pieces, and says where."""

    def __init__(self, target: str, model: Any):
        self.task = Task("evaluator", 0, {"worker": [target[len("grpc://") :]]})
        with tf.Graph().as_default() as graph:
            tf.train.get_or_create_global_step()
            Sharing().call(model, {"x": tf.zeros([4])}, "tower_0", "tower 0", training=True)
            variables = tf.global_variables()
            self._assign = [
                tf.assign(each, tf.fill(each.shape, tf.cast(2, each.dtype.base_dtype))).op for each in variables
            ]
            self._saver = StreamedSaver(saved_variables(variables), HOST, PIECE)
            self._board = Noticeboard(HOST)
        self._session = tf.Session(target, graph=graph)

    def save(self, folder: Path, step: int) -> None:
        """Saves variables that are all 2."""
        self._session.run(self._assign)
        path = str(folder / f"model-{step}")
        self._saver.save(self._session, path)
        self._board.show(self._session, path)


@pytest.fixture
def target() -> str:
    """The server of a chief that has not saved yet."""
    return servers_of([("worker", 1)])[0]


def job_of(model: Any) -> Job:
    def held_out(task: Any, args: Any) -> Any:
        return tf.data.Dataset.from_tensor_slices({"x": np.arange(8, dtype=np.float32)}).batch(4)

    return Job("job.py", held_out, model, lambda args: None, held_out)


def with_everything(x: Any) -> Any:
    """A layer of Keras, a table, a count in ``tf.metrics`` and the global step."""
    words = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [5.0, 7.0]), 0.0)
    inner = tf.keras.layers.Dense(1)(x[:, None])[:, 0]
    step = tf.cast(tf.train.get_global_step(), tf.float32) * tf.ones_like(x)
    metrics = {"word": words.lookup(tf.fill(tf.shape(x), "b")), "step": step, "mean": tf.metrics.mean(x)}
    return tf.get_variable("w", []) * inner, metrics


@pytest.mark.parametrize("batches, mean", [(None, 3.5), (1, 1.5)])
def test_layers_of_keras_lookup_tables_and_the_global_step_are_as_in_training(
    target: str, tmp_path: Path, batches: Any, mean: float
) -> None:
    chief = Chief(target, with_everything)
    follower = EvaluationGraph(job_of(with_everything), chief.task, Train(evaluate_batches=batches), {})
    assert not follower.measure_next()
    chief.save(tmp_path, 3)
    assert follower.measure_next() and follower.step == 3
    assert follower.metrics == {"loss": 2 * (2 * mean + 2), "word": 7, "step": 2, "mean": mean}
    assert not follower.measure_next(), "it is measured already"


LARGE = 24  # variables of a piece each


def large(x: Any) -> Any:
    rows = [
        tf.get_variable(f"w{index}", [PIECE // 4], initializer=tf.zeros_initializer())[:1] for index in range(LARGE)
    ]
    return x * tf.add_n(rows)


def test_a_checkpoint_of_many_files_takes_little_more_memory_than_the_model(target: str, tmp_path: Path) -> None:
    chief = Chief(target, large)
    follower = EvaluationGraph(job_of(large), chief.task, Train(), {})
    found: List[bool] = []

    def measure() -> None:
        chief.save(tmp_path, len(found) + 1)
        found.append(follower.measure_next())

    measure()
    assert grown(measure) < LARGE * PIECE / 2
    assert found == [True] * 3 and follower.metrics["loss"] == 3.5 * 2 * LARGE
