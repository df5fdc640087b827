"""Optimizers and learning rates are what the args say; what cannot be used is told by key."""

from typing import Any, Dict, List

import pytest

from cluster.errors import JobError
from cluster.optimizers import from_args
from cluster.runtime.tf_compat import tf
from cluster.schedules import learning_rate


def rates(steps: List[int], **settings: Any) -> List[float]:
    """The learning rate at each global step."""
    with tf.Graph().as_default(), tf.Session() as session:
        rate = learning_rate(**settings)
        step = tf.train.get_global_step()
        found = []
        for number in steps:
            step.load(number, session)
            found.append(float(session.run(rate)))
        return found


def test_without_a_schedule_the_rate_is_the_number_itself() -> None:
    assert learning_rate(0.1) == 0.1


@pytest.mark.parametrize(
    ("decay", "steps", "expected"),
    [
        ({"kind": "piecewise", "steps": [10, 20], "factors": [0.1, 0.01]}, [0, 9, 10, 19, 20], [1, 1, 0.1, 0.1, 0.01]),
        ({"kind": "exponential", "every": 10, "factor": 0.5}, [0, 10, 20], [1, 0.5, 0.25]),
        ({"kind": "cosine", "steps": 100}, [0, 50, 100, 200], [1, 0.5, 0, 0]),
        ({"kind": "cosine", "steps": 100, "floor": 0.2}, [50, 100], [0.6, 0.2]),
    ],
)
def test_a_decay_scales_the_rate_by_the_global_step(
    decay: Dict[str, Any], steps: List[int], expected: List[float]
) -> None:
    assert rates(steps, rate=2.0, decay=decay) == pytest.approx([2 * factor for factor in expected], abs=1e-6)


def test_warmup_rises_in_a_line_and_multiplies_with_a_decay() -> None:
    assert rates([0, 4, 9, 50], rate=1.0, warmup=10) == pytest.approx([0.1, 0.5, 1, 1])
    decay = {"kind": "exponential", "every": 1, "factor": 0.5}
    assert rates([1], rate=1.0, warmup=4, decay=decay) == pytest.approx([0.25])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sgd", tf.train.GradientDescentOptimizer),
        ("momentum", tf.train.MomentumOptimizer),
        ("nesterov", tf.train.MomentumOptimizer),
        ("adagrad", tf.train.AdagradOptimizer),
        ("rmsprop", tf.train.RMSPropOptimizer),
        ("adam", tf.train.AdamOptimizer),
        ("ftrl", tf.train.FtrlOptimizer),
    ],
)
def test_every_optimizer_lowers_a_loss(name: str, kind: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        optimizer = from_args({"optimizer": name, "learning_rate": 0.1, "warmup": 2})
        assert isinstance(optimizer, kind)
        w = tf.get_variable("w", [], initializer=tf.ones_initializer())
        train = optimizer.minimize(tf.square(w), tf.train.get_global_step())
        session.run(tf.global_variables_initializer())
        for _ in range(20):
            session.run(train)
        assert session.run(w) < 1


def test_args_go_before_the_jobs_defaults() -> None:
    with tf.Graph().as_default():
        given = from_args({"learning_rate": 0.5, "hidden": 3}, optimizer="momentum", learning_rate=0.1, momentum=0.8)
    assert (given._learning_rate, given._momentum) == (0.5, 0.8)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"optimizer": "adamax"}, "args.optimizer: expected one of sgd, momentum, nesterov, adagrad"),
        ({"learning_rate": "1e-3"}, "args.learning_rate: expected a number, found '1e-3'; YAML reads 1e-3 as text"),
        ({"beta1": True}, "args.beta1: expected a number from 0, found True"),
        ({"warmup": -1}, "args.warmup: expected a number from 0, found -1"),
        ({"decay": 0.9}, "args.decay: expected a mapping such as {kind: cosine, steps: 9000}, found 0.9"),
        ({"decay": {"kind": "cos"}}, "args.decay.kind: expected one of piecewise, exponential, cosine, found 'cos'"),
        ({"decay": {"kind": "cosine"}}, "args.decay.steps: expected a value, as decay.kind is cosine, found 'none'"),
        ({"decay": {"kind": "cosine", "every": 3}}, "args.decay: expected the keys kind, steps, floor, found 'every'"),
        ({"decay": {"kind": "cosine", "steps": 0}}, "args.decay.steps: expected a number from 1, found 0"),
        ({"decay": {"kind": "piecewise", "steps": 3, "factors": [1]}}, "args.decay.steps: expected a list of numbers"),
        (
            {"decay": {"kind": "piecewise", "steps": [3, 2], "factors": [1, 1]}},
            "args.decay.steps: expected steps that increase, found [3, 2]",
        ),
        (
            {"decay": {"kind": "piecewise", "steps": [3, 4], "factors": [1]}},
            "args.decay.factors: expected one factor for each of the 2 steps, found [1]",
        ),
    ],
)
def test_a_value_that_cannot_be_used_is_told_by_its_key(args: Dict[str, Any], told: str) -> None:
    with tf.Graph().as_default(), pytest.raises(JobError) as caught:
        from_args(args)
    assert told in str(caught.value)
