"""The gradients of all copies of a model make up that of one process, whatever the optimizer adds to the loss.

The copies of all workers are in one bare graph, without servers.
"""

from types import ModuleType
from typing import Any, Dict, List

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.job import Job
from cluster.model.job_results import COUNTS
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.verify.verified_run import VerifiedRun
from cluster.verify.whole_model import WholeModel

HERE = "/device:CPU:0"
X = np.arange(1.0, 9.0, dtype=np.float32)
Descent: Any = tf.train.GradientDescentOptimizer


def model(x: Any) -> Any:
    w = tf.get_variable("w", [2], initializer=tf.constant_initializer([1.0, -2.0]))
    return tf.square(x * w[0] + w[1])


class Decaying(Descent):  # type: ignore[misc]
    """Adds to the loss a term without examples."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        decay = tf.add_n([tf.nn.l2_loss(each) for each in tf.trainable_variables()])
        return super().compute_gradients(loss + 10.0 * decay, *args, **kwargs)


class Clipping(Descent):  # type: ignore[misc]
    """Bounds each element of a gradient."""

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = super().compute_gradients(loss, *args, **kwargs)
        return [(tf.clip_by_value(grad, -20.0, 20.0), variable) for grad, variable in pairs]


def gradients(optimizer: Any, workers: int, towers: int, counts: Any = None, **train: Any) -> List[Any]:
    """The gradient that each worker gives, and the weight of each of its batches, if that varies."""
    job = ModuleType("job")
    job.__file__ = __file__
    vars(job).update(inputs=lambda task: None, model=model, optimizer=lambda args: optimizer)
    accumulate = train.get("accumulate", 1)
    settings = Train.from_dict({"batch_size": len(X) // (workers * towers * accumulate), "towers": towers, **train})
    cluster = {"ps": ["a:1"], "worker": [f"b:{index}" for index in range(workers)]}
    with tf.Graph().as_default(), tf.Session() as session:
        batches: List[Dict[str, Any]] = [{"x": tf.constant(each)} for each in np.split(X, workers)]
        for batch, each in zip(batches, np.split(np.float32(counts), workers) if counts else []):
            batch[COUNTS] = tf.constant(each)
        tasks = [Task("worker", index, cluster, len(X) // workers) for index in range(workers)]
        whole = WholeModel(VerifiedRun(Job.from_module(job), settings, {}, tasks, ["CPU:0"] * towers), batches)
        whole.place = counts
        whole.build(lambda device: HERE)
        session.run(tf.global_variables_initializer())
        pairs = [(tf.convert_to_tensor(each.grads["w"]), each.weight) for each in whole.workers]
        given: List[Any] = session.run(
            [(grad, tf.constant(1.0 / workers) if weight is None else weight) for grad, weight in pairs]
        )
        return given


def in_one_process(x: Any, decay: float) -> Any:
    error = 2.0 * (x * 1.0 - 2.0)
    return np.array([np.mean(error * x) + decay * 1.0, np.mean(error) + decay * -2.0], np.float32)


@pytest.mark.parametrize("train", [{}, {"accumulate": 2}, {"mode": "async"}], ids=["towers", "accumulated", "async"])
@pytest.mark.parametrize(("workers", "towers"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_a_term_that_the_optimizer_adds_counts_once_however_many_copies_there_are(
    workers: int, towers: int, train: Dict[str, Any]
) -> None:
    found = [grad for grad, _ in gradients(Decaying(0.1), workers, towers, **train)]
    if train.get("mode") == "async":  # each worker has a mean of its own
        for grad, x in zip(found, np.split(X, workers)):
            np.testing.assert_allclose(grad, in_one_process(x, 10.0), rtol=1e-5)
    else:
        np.testing.assert_allclose(sum(found), in_one_process(X, 10.0), rtol=1e-5)


def test_it_counts_once_where_some_examples_do_not_count_and_none_of_a_copy() -> None:
    counts = [1, 1, 1, 0, 0, 0, 1, 1]  # none of the third of four copies
    found = gradients(Decaying(0.1), 2, 2, counts)
    total = sum(grad for grad, _ in found) / sum(weight for _, weight in found)
    np.testing.assert_allclose(total, in_one_process(X[np.array(counts) > 0], 10.0), rtol=1e-5)


def test_with_tensorflows_own_steps_the_optimizer_changes_a_workers_gradient_and_not_each_towers() -> None:
    ((whole, _),) = gradients(Clipping(0.1), 1, 1, sync="stock")
    ((found, _),) = gradients(Clipping(0.1), 1, 2, sync="stock")
    np.testing.assert_allclose(found, whole, rtol=1e-6)
    assert whole.tolist() == [20.0, pytest.approx(5.0)]


def test_an_optimizer_that_brings_workers_together_itself_is_refused_with_the_line_of_optimizer() -> None:
    class DropStaleGradientOptimizer(Descent):  # type: ignore[misc]
        """As contrib has it, by name."""

    stock = tf.train.SyncReplicasOptimizer(Descent(0.1), 1, 1)
    for optimizer in (stock, DropStaleGradientOptimizer(0.1)):
        found = (
            rf"test_model_graph.py:\d+: optimizer returned a {type(optimizer).__name__}; expected the optimizer that"
        )
        with pytest.raises(JobError, match=found):
            gradients(optimizer, 1, 1)
