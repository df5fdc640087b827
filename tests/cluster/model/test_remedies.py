"""What was refused is named with what to write in its place."""

from typing import Any

import pytest

from cluster.job import Job
from cluster.model.job_results import named_parts, optimizer_of_tf_train
from cluster.runtime.tf_compat import tf


def job(model: Any) -> Job:
    return Job("job.py", print, model, print).with_args({})


@pytest.mark.parametrize(
    ("model", "batch", "expected"),
    [
        (lambda image, args, training: image, 0, '; name its parts: data.map(lambda image: {"image": image})'),
        (lambda one: one, (0, 0), '; name its parts: data.map(lambda x, y: {"x": x, "y": y})'),
        (lambda a, b: a, (0, 0), '; name its parts: data.map(lambda a, b: {"a": a, "b": b})'),
        (lambda one: one, (0,) * 4, ""),
    ],
)
def test_the_parts_of_a_batch_get_the_names_of_the_models_parameters(model: Any, batch: Any, expected: str) -> None:
    assert named_parts(job(model), batch) == expected


@pytest.mark.parametrize(
    ("kind", "instead"),
    [
        ("Adam", "AdamOptimizer"),
        ("SGD", "GradientDescentOptimizer"),
        ("RMSprop", "RMSPropOptimizer"),
        ("Nadam", "AdamOptimizer"),
        ("Adagrad", "AdagradOptimizer"),
    ],
)
def test_an_optimizer_of_keras_is_named_with_the_one_to_make_in_its_place(kind: str, instead: str) -> None:
    with tf.Graph().as_default():
        found = getattr(tf.keras.optimizers, kind)(0.1)
    assert optimizer_of_tf_train([found]) == f"; use tf.train.{instead} instead of Keras's {kind}"
    assert optimizer_of_tf_train([tf.train.AdamOptimizer(0.1)]) == ""
