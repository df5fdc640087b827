"""A copy of a model that takes a tensor of another is refused, unless all copies have it, or nothing changes it."""

from typing import Any, Callable, List

import pytest

from cluster.errors import JobError
from cluster.model.job_results import refuse_borrowed
from cluster.runtime.tf_compat import tf
from cluster.sharing.variables import Sharing


def squares(kept: List[Any], x: Any, w: Any) -> Any:
    kept.append(tf.nn.l2_loss(w))
    return x * tf.add_n(kept)


def normalised(kept: List[Any], x: Any, w: Any) -> Any:
    if not kept:
        kept.append(w / tf.norm(w))
    return x * kept[0]


def constant(kept: List[Any], x: Any, w: Any) -> Any:
    if not kept:
        kept.append(tf.range(3.0))
    return x * kept[0] * w


def regularized(kept: List[Any], x: Any, w: Any) -> Any:
    return x * w + tf.add_n(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES))


def build(model: Callable[..., Any]) -> None:
    kept: List[Any] = []
    sharing, x = Sharing(), tf.placeholder(tf.float32, [4, 3])

    def called(x: Any) -> Any:
        return model(kept, x, tf.get_variable("w", [3], regularizer=tf.nn.l2_loss))

    losses = [sharing.call(called, {"x": x}, f"tower_{index}", "", True) for index in range(2)]
    refuse_borrowed(sharing, [[loss] for loss in losses], {x.op, *(each.op for each in tf.global_variables())})


@pytest.mark.parametrize("model", [squares, normalised])
def test_a_tensor_of_variables_that_an_object_keeps_is_refused_with_its_line(model: Callable[..., Any]) -> None:
    refused = pytest.raises(JobError, match=r"test_borrowed\.py:\d+: the loss of one tower depends on this operation")
    with tf.Graph().as_default(), refused:
        build(model)


@pytest.mark.parametrize("model", [constant, regularized])
def test_a_constant_and_what_was_made_with_a_variable_belong_to_all(model: Callable[..., Any]) -> None:
    with tf.Graph().as_default():
        build(model)
