"""An evaluation tells what the model is worth on all held-out examples, or on so many batches of them."""

import re
from typing import Any, Dict, Iterator

import numpy as np
import pytest

from cluster import metrics
from cluster.errors import JobError
from cluster.job import Job
from cluster.model.evaluation import Evaluation
from cluster.runtime.tf_compat import tf
from cluster.scoring import ranked_scores
from cluster.sharing.variables import Sharing
from cluster.task import Task
from cluster.towers import outputs_of

X = np.arange(10, dtype=np.float32)
TASK: Any = Task


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


class Lenient(Job):
    """A job of which any loss and metrics are taken."""

    def losses(self, output: Any) -> Any:
        return output


def held_out(task: Any, args: Any) -> Any:
    return tf.data.Dataset.from_tensor_slices({"x": X}).batch(4)  # the last one has two


def built(model: Any, sharing: Any = None, evaluate: Any = held_out) -> Evaluation:
    job = Lenient("job.py", held_out, model, lambda args: None, evaluate)
    found = Evaluation.build(job, TASK, {}, "/device:CPU:0", sharing)
    assert found is not None
    return found


def run(evaluation: Evaluation, times: int = 1, **settings: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [evaluation.run(session, **settings) for _ in range(times)]


def absolute_errors(x: Any) -> Any:
    w = tf.get_variable("w", [], initializer=tf.ones_initializer())
    return w * x, {"even": tf.cast(tf.equal(x % 2, 0), tf.float32)}


def test_a_note_has_the_distance_from_the_exact_area_where_there_are_too_many_scores(
    monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(ranked_scores, "MOST_ROWS", 4)
    evaluation = built(lambda x: (x, {"auc": metrics.by(x > 100, metrics.auc(x % 2, x))}))
    (found,) = run(evaluation)
    assert abs(found["auc"] - 0.6) <= 0.2 and found["auc"] == found["auc/False"]  # 15 of 25 pairs are in order
    assert re.search(r"^auc: at most [12]\.\de-01 from the exact value; at most", capsys.readouterr().out)
    assert "auc" in run(evaluation, batches=1)[0] and not capsys.readouterr().out


def test_it_is_the_mean_over_examples_however_they_are_batched() -> None:
    assert run(built(absolute_errors)) == [{"loss": 4.5, "even": 0.5}]


def test_it_may_be_limited_to_some_batches_and_begins_anew_each_time() -> None:
    assert run(built(absolute_errors), times=2, batches=2) == [{"loss": 3.5, "even": 0.5}] * 2


def test_a_dataset_without_an_end_is_refused_unless_the_evaluation_is_limited() -> None:
    sharing = Sharing()
    endless = built(absolute_errors, sharing, lambda *of: held_out(*of).repeat())
    ending = built(absolute_errors, sharing)
    with tf.Session() as session:
        with pytest.raises(JobError, match=r"^.*test_evaluation\.py:\d+: evaluate returned a dataset without an end"):
            endless.refuse_endless(session, None)
        endless.refuse_endless(session, 2)
        ending.refuse_endless(session, None)


def test_no_examples_have_no_mean() -> None:
    (found,) = run(built(absolute_errors, evaluate=lambda *of: held_out(*of).take(0)))
    assert np.isnan([found["loss"], found["even"]]).all()


def test_a_metric_of_tf_metrics_counts_from_nothing_in_each_run() -> None:
    def model(x: Any) -> Any:
        small = tf.cast(x < 3, tf.int32)
        accuracy = tf.metrics.accuracy(labels=small, predictions=tf.zeros_like(small))
        return x, {"accuracy": accuracy, "top": tf.metrics.mean(tf.reduce_max(x))}

    first, second = run(built(model), times=2)
    assert first == second == {"loss": 4.5, "accuracy": pytest.approx(0.7), "top": pytest.approx((3 + 7 + 9) / 3)}


def test_what_metrics_of_the_towers_count_is_left_alone() -> None:
    def model(x: Any) -> Any:
        return x * tf.get_variable("w", [], initializer=tf.ones_initializer()), {"mean": tf.metrics.mean(x)}

    sharing = Sharing()
    ((_, of_tower),) = outputs_of(model, ["/device:CPU:0"], [{"x": tf.constant([50.0])}], sharing)
    evaluation = built(model, sharing)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        session.run(of_tower["mean"][1])
        assert evaluation.run(session)["mean"] == 4.5
        assert session.run(of_tower["mean"][0]) == 50


def test_a_pair_of_label_and_score_per_example_is_the_area_under_the_roc_curve() -> None:
    def model(x: Any) -> Any:
        return x, {"auc": (tf.cast(x > 4, tf.int32), x), "wrong": (tf.cast(x > 4, tf.float32), -x)}

    assert run(built(model)) == [{"loss": 4.5, "auc": 1, "wrong": 0}]


def test_the_evaluation_takes_the_variables_of_the_towers() -> None:
    def model(x: Any) -> Any:
        return x * tf.Variable(2.0, name="w"), {}

    sharing = Sharing()
    outputs_of(model, ["/device:CPU:0"], [{"x": tf.constant([1.0])}], sharing)
    assert run(built(model, sharing)) == [{"loss": 9}]
    assert [variable.op.name for variable in tf.global_variables()] == ["w"]


def test_a_model_is_told_that_it_does_not_train() -> None:
    def model(x: Any, training: bool) -> Any:
        told: Dict[str, Any] = {"training": tf.fill(tf.shape(x), float(training))}
        return x, told

    assert run(built(model)) == [{"loss": 4.5, "training": 0}]
