"""What an optimizer passes on is c · loss + r, where c and r are the same in every copy of the model, or is refused."""

from typing import Any, Callable, Dict, NamedTuple

import pytest

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.updates.optimizer_gradients import own_gradients
from cluster.updates.passed_loss import NotLinear, PassedLoss

Descent: Any = tf.train.GradientDescentOptimizer


class Copy(NamedTuple):
    """One copy of a model: its batch, its loss, and a variable."""

    x: Any
    loss: Any
    w: Any


Change = Callable[[Copy], Any]


def waiting(copy: Copy, first: Any, value: Callable[[], Any]) -> Any:
    with tf.control_dependencies([first]):
        return value()


def a_copy() -> Copy:
    x = tf.placeholder(tf.float32, [4])
    w = tf.get_variable("w", [], initializer=tf.ones_initializer(), use_resource=True)
    return Copy(x, tf.reduce_mean(tf.square(w * x - 1.0)), w)


WITHOUT_SCALE: Dict[str, Change] = {
    "the loss itself": lambda copy: copy.loss,
    "an identity": lambda copy: tf.identity(copy.loss),
    "a term of a variable": lambda copy: copy.loss + 0.1 * tf.nn.l2_loss(copy.w),
    "a term before it": lambda copy: tf.nn.l2_loss(copy.w) + copy.loss,
    "a sum of a list": lambda copy: tf.add_n([copy.loss, tf.nn.l2_loss(copy.w)]),
    "a reduced list": lambda copy: tf.reduce_sum([copy.loss, tf.nn.l2_loss(copy.w)]),
    "less a term": lambda copy: copy.loss - tf.nn.l2_loss(copy.w),
    "checked": lambda copy: tf.debugging.check_numerics(copy.loss, "no number"),
    "in more bits": lambda copy: tf.cast(copy.loss, tf.float64),
    "after a look at it": lambda copy: waiting(copy, tf.print(copy.loss), lambda: tf.identity(copy.loss)),
}
WITH_SCALE: Dict[str, Change] = {
    "times a number": lambda copy: copy.loss * 1024.0,
    "times a variable": lambda copy: copy.w * copy.loss,
    "times a number after a look at it": lambda copy: waiting(copy, tf.print(copy.loss), lambda: copy.loss * 2.0),
    "over a number": lambda copy: copy.loss / 3.0,
    "the other way round": lambda copy: -copy.loss,
    "taken off a term": lambda copy: tf.nn.l2_loss(copy.w) - copy.loss,
    "twice": lambda copy: copy.loss + copy.loss,
    "the mean of two": lambda copy: tf.reduce_mean([copy.loss, tf.nn.l2_loss(copy.w)]),
    "scaled, with a term": lambda copy: 8.0 * (copy.loss + tf.nn.l2_loss(copy.w)),
}
REFUSED: Dict[str, Change] = {
    "kept off a level": lambda copy: tf.abs(copy.loss - 0.1) + 0.1,
    "squared": lambda copy: copy.loss * copy.loss,
    "under a line": lambda copy: 1.0 / copy.loss,
    "times itself as a number": lambda copy: copy.loss * tf.stop_gradient(copy.loss),
    "a term of the batch": lambda copy: copy.loss + tf.reduce_sum(copy.x),
    "a factor of the batch": lambda copy: copy.loss * tf.reduce_max(copy.x),
    "a term of the batch alone": lambda copy: tf.reduce_sum(copy.x) * copy.w,
    "a rounded loss": lambda copy: tf.cast(tf.cast(copy.loss, tf.int32), tf.float32),
    "by a branch": lambda copy: tf.cond(copy.w > 0.0, lambda: copy.loss, lambda: 2.0 * copy.loss),
    "over its own average": lambda copy: waiting(
        copy, copy.w.assign_add(copy.loss), lambda: copy.loss / copy.w.read_value()
    ),
    "no tensor": lambda copy: lambda: copy.loss,
}


@pytest.mark.parametrize("name", [*WITHOUT_SCALE, *WITH_SCALE])
def test_a_multiple_of_the_loss_and_terms_without_examples_are_passed_on(name: str) -> None:
    with tf.Graph().as_default():
        copy = a_copy()
        passed = {**WITHOUT_SCALE, **WITH_SCALE}[name](copy)
        assert PassedLoss(copy.loss, [copy.x]).scales(passed) is (name in WITH_SCALE)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_the_same_for_every_copy_is_refused(name: str) -> None:
    with tf.Graph().as_default(), pytest.raises(NotLinear):
        copy = a_copy()
        PassedLoss(copy.loss, [copy.x]).scales(REFUSED[name](copy))


class Passing(Descent):  # type: ignore[misc]
    """Passes on what a function makes of the loss."""

    def __init__(self, change: Callable[[Any], Any], **more: Any):
        super().__init__(0.1)
        self.change, self.more = change, more

    def compute_gradients(self, loss: Any, *args: Any, **kwargs: Any) -> Any:
        return super().compute_gradients(self.change(loss), *args, **kwargs, **self.more)


def test_an_error_names_the_optimizer_the_line_and_what_was_found() -> None:
    expected = (
        r"^optimizer Passing \(\S*test_passed_loss.py:\d+\): expected compute_gradients to pass on c · loss \+ r, found"
        r" that it passes on Abs \(Abs\), which depends on the loss or on the batch; put that term into the loss of"
        r" each example"
    )
    with tf.Graph().as_default(), pytest.raises(JobError, match=expected):
        copy = a_copy()
        own_gradients(Passing(lambda loss: tf.abs(loss - 0.1) + 0.1), copy.loss, [copy.w], 0.5, [copy.x])


def test_a_gradient_of_the_loss_that_depends_on_the_batch_is_refused() -> None:
    with tf.Graph().as_default(), pytest.raises(JobError, match=r"it passes on Max "):
        copy = a_copy()
        optimizer = Passing(tf.identity, grad_loss=tf.reduce_max(copy.x))
        own_gradients(optimizer, copy.loss, [copy.w], 0.5, [copy.x])


@pytest.mark.parametrize("weight", [0.25, "a tensor"])
def test_a_weight_is_one_scalar_that_comes_before_every_gradient(weight: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        w = tf.get_variable("w", [3], tf.float16, initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.cast(w * tf.constant([1.0, 2.0, 3.0], tf.float16), tf.float32))
        given = tf.constant(0.25) if weight == "a tensor" else weight
        ((grad, _),) = own_gradients(
            Passing(lambda loss: 3.0 * loss + tf.cast(w[0], tf.float32)), loss, [w], given
        ).pairs
        session.run(w.initializer)
        assert session.run(grad).tolist() == pytest.approx([0.25 * (1.0 + 1.0), 0.25 * 2.0, 0.25 * 3.0], rel=1e-3)
