"""A loss or a gradient that is not a finite number stops the worker, or adds nothing to the step."""

from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.updates.nan_guard import ignore_unless_finite, reason, stop_unless_finite
from tests.support.training.alone import train_alone

GOOD, NAN, INF = 1.0, float("nan"), float("inf")


def gradients(dense: float, sparse: float) -> List[Tuple[Any, str]]:
    """Of three variables: a dense one, a sparse one, and none."""
    rows = tf.IndexedSlices(tf.constant([1.0, sparse]), tf.constant([1, 0]), tf.constant([2]))
    return [(tf.constant([dense, 2.0]), "dense"), (rows, "rows"), (None, "unused")]


def run(guard: Any, *numbers: float) -> Tuple[float, Any, Any]:
    """Loss, dense gradient and values of the sparse one, as they come out of a guard."""
    with tf.Graph().as_default(), tf.Session() as session:
        out, kept = guard(tf.constant(numbers[0]), gradients(*numbers[1:]))
        assert kept[2][0] is None
        loss, dense, sparse = session.run([out, kept[0][0], kept[1][0].values])
        return loss, dense, sparse


@pytest.mark.parametrize("guard", [stop_unless_finite, ignore_unless_finite])
def test_finite_numbers_pass_unchanged(guard: Any) -> None:
    loss, dense, sparse = run(guard, 3.0, GOOD, GOOD)
    assert loss == 3.0 and dense.tolist() == [1, 2] and sparse.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("loss", "dense", "sparse", "told"),
    [
        (NAN, NAN, NAN, "the loss is not a finite number"),
        (INF, GOOD, GOOD, "the loss is not a finite number"),
        (GOOD, INF, GOOD, "the gradient of dense is not a finite number"),
        (GOOD, GOOD, NAN, "the gradient of rows is not a finite number"),
    ],
)
def test_what_is_not_finite_fails_and_is_named_the_loss_first(
    loss: float, dense: float, sparse: float, told: str
) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        run(stop_unless_finite, loss, dense, sparse)
    assert reason(caught.value) == told


@pytest.mark.parametrize(("loss", "dense", "sparse"), [(NAN, GOOD, GOOD), (GOOD, INF, GOOD), (GOOD, GOOD, NAN)])
def test_when_ignored_the_whole_gradient_is_zero_and_the_loss_says_so(loss: float, dense: float, sparse: float) -> None:
    loss, dense, sparse = run(ignore_unless_finite, loss, dense, sparse)
    assert np.isnan(loss) and not np.any(dense) and not np.any(sparse)


def test_a_half_precision_gradient_is_not_judged_by_a_sum_that_overflows() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        _, kept = stop_unless_finite(tf.constant(0.0), [(tf.constant([60000, 60000], tf.float16), "half")])
        assert session.run(kept[0][0]).tolist() == [60000, 60000]


def test_another_error_is_not_taken_for_one_of_these() -> None:
    assert reason(ValueError("shapes do not match")) is None


def test_a_run_is_stopped_with_step_worker_and_variable_named_and_keeps_its_last_good_checkpoint(
    tmp_path: Path,
) -> None:
    def inputs(task: Task, args: Dict[str, Any]) -> Any:
        return tf.data.Dataset.from_tensor_slices({"x": [[4.0, 9.0], [1.0, 4.0], [1.0, 0.0]]})

    def model(x: Any) -> Any:
        return tf.sqrt(tf.get_variable("w", [], initializer=tf.ones_initializer()) * x)  # no gradient at 0

    job = Job(__file__, inputs, model, lambda args: tf.train.GradientDescentOptimizer(0.01))
    outcome = train_alone(job, tmp_path, {}, steps=3, batch_size=2, checkpoint={"every_s": 0})
    assert (outcome.succeeded, outcome.retry, outcome.kind) == (False, False, "non-finite")
    told = "worker:0: the gradient of w is not a finite number in step 2, which was not applied; lower the learning"
    assert str(outcome.cause).startswith(told)
    reader = tf.train.load_checkpoint(str(tmp_path / "checkpoint"))
    assert reader.get_tensor("global_step") == 2 and np.isfinite(reader.get_tensor("w"))
