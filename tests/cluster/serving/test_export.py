"""A SavedModel of a checkpoint predicts as the run does, in a process that knows nothing of this project."""

from pathlib import Path
from typing import Any, Dict, List, NamedTuple

import numpy as np
import pytest

from cluster.checkpoints.finished_files import Noticeboard
from cluster.errors import CheckpointError, JobError
from cluster.job import Job
from cluster.protocol.outcome import Outcome
from cluster.runtime.devices import worker_device
from cluster.runtime.tf_compat import tf
from cluster.serving.evaluator import EvaluationGraph
from cluster.serving.saved_model import export
from cluster.task import Task, Train
from tests.cluster.recommend.tables import plain
from tests.cluster.recommend.tables.test_checkpoints import rows_in
from tests.cluster.steps.test_sync_worker import servers_of
from tests.support.nightly import few
from tests.support.training.jobs import served
from tests.support.training.processes import Cluster
from tests.support.training.serving import answers

TASK = Task("worker", 0, {"ps": ["-"], "worker": ["-"]}, batch_size=4)
WIDTHS = (4, 2)
ARGS = {"optimizer": "adagrad", "steps": 6, "wide": 2}


class Trained(NamedTuple):
    """A run of the job ``served`` that has ended: its chief's outcome, with metrics of held-out examples."""

    outcome: Outcome

    @property
    def checkpoint(self) -> str:
        return str(self.outcome.checkpoint)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: Any) -> Trained:
    with Cluster(tmp_path_factory.mktemp("run"), served.__name__, ps=2, workers=1) as cluster:
        cluster.start_all({"steps": 6, "batch_size": 4}, ARGS)
        return Trained(cluster.finish())


def fed(examples: Dict[str, np.ndarray]) -> Dict[str, np.ndarray]:
    """The inputs of a server, for examples as the job's files have them."""
    users, lengths = examples["user"], np.minimum(examples["hour"], 3)
    tags = np.stack([users % 5, users % 3], 1)
    words = [row[:length] for row, length in zip(examples["words"], lengths)]
    return {
        "user": users, "hour": examples["hour"], 
        "words_values": np.concatenate([*words, np.array([], str)]).astype(np.bytes_),
        "words_row_lengths": lengths.astype(np.int64),
        "tags_indices": np.argwhere(tags), "tags_values": tags[tags != 0],
        "tags_dense_shape": np.array(tags.shape),
    }  # fmt: skip


def scores(checkpoint: str, examples: Dict[str, np.ndarray]) -> np.ndarray:
    """What the job's model is for these examples, by numpy alone."""
    rows, reader = rows_in(checkpoint, WIDTHS), tf.train.load_checkpoint(checkpoint)
    kernel, bias, night = (reader.get_tensor(name) for name in ("dense/kernel", "dense/bias", "night"))

    def row(table: str, initializer: Any, identity: int) -> Any:
        known = rows[table].get(identity)
        width = 2 if table == "tags" else 4
        return plain.first_row_of(table, width, initializer, identity) if known is None else known

    normal, found = ("normal", 0.0, 0.5, 0), []
    words = plain.identities(examples["words"])
    for user, terms, hour in zip(examples["user"].tolist(), words.tolist(), examples["hour"].tolist()):
        bag = [row("words", normal, each) for each in terms[:hour]]
        tags = [row("tags", ("constant", 0.5, 0.0, 0), each) for each in (user % 5, user % 3) if each]
        parts = [row("user", normal, user), np.mean(bag, 0) if bag else np.zeros(4), np.sum([np.zeros(2), *tags], 0)]
        found.append(np.concatenate(parts) @ kernel[:, 0] + bias[0] + night * {0: 1, 1: 2, 2: 3}.get(hour, 0))
    return 1 / (1 + np.exp(-np.array(found)))


@pytest.mark.parametrize("piece_bytes", few([1 << 30, 200], [200]))
def test_served_predictions_are_those_of_the_run_also_of_one_example_and_of_none(
    trained: Trained, tmp_path: Path, piece_bytes: int
) -> None:
    (tmp_path / "served.partial").mkdir()  # of the user
    report = export(Job.from_module(served), TASK, ARGS, trained.checkpoint, str(tmp_path / "served"), piece_bytes)
    assert {path.name for path in tmp_path.iterdir()} == {"served", "served.partial"}
    examples = served.held_out()
    expected = scores(trained.checkpoint, examples)
    assert np.mean(expected) == pytest.approx(trained.outcome.metrics["score"], rel=1e-5)
    one, none = ({name: each[:size] for name, each in examples.items()} for size in (1, 0))
    for way in ("session", "eager"):
        whole, *small = answers(tmp_path / "served", way, [fed(examples), fed(one), fed(none)])
        for each, part in zip(small, (one, none)):
            np.testing.assert_allclose(each["score"][:, 0], scores(trained.checkpoint, part), atol=1e-6)
        found = whole["score"]
        np.testing.assert_allclose(found, np.stack([expected] * 2, 1), atol=1e-6)
        assert np.mean(found) == pytest.approx(trained.outcome.metrics["score"], rel=1e-6)
    assert "y" not in report["inputs"] and report["inputs"]["user"] == {"dtype": "int64", "shape": [None]}
    assert report["outputs"] == {"score": {"dtype": "float32", "shape": [None, 2]}}
    rows = rows_in(trained.checkpoint, WIDTHS)
    assert report["tables"] == {name: len(each) for name, each in rows.items()}


def test_an_evaluator_measures_what_the_chief_has_found(trained: Trained) -> None:
    """Held-out examples have ids with a row and ids without one; two servers held the rows."""
    (target,) = servers_of([("worker", 1)])
    job, task = Job.from_module(served), Task("evaluator", 0, {"worker": [target[len("grpc://") :]]})
    follower = EvaluationGraph(job, task, Train(), ARGS)
    with tf.Graph().as_default(), tf.Session(target) as session:
        Noticeboard(worker_device("worker", 0)).show(session, trained.checkpoint)
    assert follower.measure_next() and follower.step == 6
    assert follower.metrics == pytest.approx(trained.outcome.metrics, rel=1e-6)


def refused(tmp_path: Path, checkpoint: str, **functions: Any) -> str:
    job = Job.from_module(served)
    with pytest.raises((JobError, CheckpointError)) as raised:
        export(Job(**{**vars(job), **functions}), TASK, ARGS, checkpoint, str(tmp_path / "served"))
    assert list(tmp_path.iterdir()) == [], "nothing half done"
    return str(raised.value)


def _other_layer(user: Any, hour: Any) -> Any:
    values = tf.stack([tf.cast(user, tf.float32), tf.cast(hour, tf.float32)], 1)
    return tf.keras.layers.Dense(1)(values)


def _python(hour: Any) -> Any:
    return tf.py_func(lambda value: value, [hour], tf.int32)


def _many(**batch: Any) -> Any:
    return batch["user"]


def _fresh(hour: Any) -> Any:
    return tf.get_variable("fresh", []) + tf.cast(hour, tf.float32)


CASES: List[Any] = [
    (None, "expected a function predict, found none"),
    (lambda nobody: nobody, "found also ['nobody']"),
    (_many, "expected parameters with names of inputs"),
    (lambda hour: [hour], "expected a tensor, or {name: tensor}"),
    (lambda hour: {}, "expected a tensor, or {name: tensor}"),
    (_fresh, "'fresh', which model does not make"),
    (_other_layer, "expected 'dense/kernel' of shape [10, 1], as in model"),
    (_python, "expected operations of TensorFlow, found Python code"),
]


@pytest.mark.parametrize(("predict", "message"), CASES, ids=[message for _, message in CASES])
def test_what_cannot_be_served_is_refused(trained: Trained, predict: Any, message: str, tmp_path: Path) -> None:
    found = refused(tmp_path, trained.checkpoint, predict=predict)
    assert message in found


def test_a_checkpoint_that_is_missing_or_of_another_model_is_refused_by_name(trained: Trained, tmp_path: Path) -> None:
    def model(user: Any, words: Any, tags: Any, hour: Any, y: Any) -> Any:
        return served.model(user, words, tags, hour, y)[0] * tf.get_variable("more", [])

    def predict(user: Any, words: Any, tags: Any, hour: Any) -> Any:
        return served.logits(user, words, tags, hour) * tf.get_variable("more", [])

    assert "Key more not found in checkpoint" in refused(tmp_path, trained.checkpoint, model=model, predict=predict)
    assert "checkpoint none: " in refused(tmp_path, "none")


def test_layers_that_tensorflow_counts_must_be_the_same_ones(trained: Trained, tmp_path: Path) -> None:
    """``predict`` would get the first of two equal layers, where it means the second."""

    def layer(hour: Any) -> Any:
        return tf.keras.layers.Dense(1)(tf.cast(hour, tf.float32)[:, None])[:, 0]

    def model(hour: Any, y: Any, **others: Any) -> Any:
        return layer(hour) * 2 + layer(hour) * y

    found = refused(tmp_path, trained.checkpoint, model=model, predict=layer)
    assert "expected all variables that TensorFlow numbers in model (dense/kernel, dense_1" in found
    assert "make the same layers in predict, or name each layer in both" in found
