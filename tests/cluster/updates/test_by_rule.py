"""Optimizers that are one rule for elements, whole and in parts, are as numpy has them; others are refused."""

from types import MappingProxyType
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.optimizers import AdagradDecay, AdamAsync, AdamW, ByRule, GroupFtrl, from_args
from cluster.recommend.tables.row_optimizers import rule_of, slots_of
from cluster.runtime.tf_compat import tf
from cluster.updates.by_rule import updated
from cluster.updates.incremental_apply import IncrementalApply, is_elementwise

STEPS = 6
GRADS = np.random.RandomState(0).normal(size=[STEPS, 3, 4]).astype(np.float32)
FIRST = np.random.RandomState(1).normal(size=[3, 4]).astype(np.float32)


def trained(optimizer: Any, is_resource: bool = True, in_parts: bool = False, sparse: bool = False) -> np.ndarray:
    """The values of a variable after all steps, whole or in two parts that are updated one after the other."""
    with tf.Graph().as_default(), tf.Session() as session:
        grad = tf.placeholder(tf.float32, [3, 4])
        cuts = [slice(0, 1), slice(1, 3)] if in_parts else [slice(0, 3)]
        parts = [
            tf.get_variable(f"w_{place}", initializer=FIRST[cut], use_resource=is_resource)
            for place, cut in enumerate(cuts)
        ]
        rows = [tf.range(cut.stop - cut.start) for cut in cuts]
        grads = [tf.IndexedSlices(grad[cut], own) if sparse else grad[cut] for cut, own in zip(cuts, rows)]
        apply = IncrementalApply(optimizer)
        for pair in zip(grads, parts):
            apply.update([pair])
        step = apply.finish() if in_parts else optimizer.apply_gradients(list(zip(grads, parts)))
        session.run(tf.global_variables_initializer())
        for each in GRADS:
            session.run(step, {grad: each})
        return np.concatenate(session.run(parts))


def adamw(rate: float, decay: float) -> np.ndarray:
    value, mean, square = FIRST.astype(np.float64), np.zeros([3, 4]), np.zeros([3, 4])
    for number, grad in enumerate(GRADS.astype(np.float64), 1):
        mean, square = 0.9 * mean + 0.1 * grad, 0.999 * square + 0.001 * grad**2
        step = mean / (1 - 0.9**number) / (np.sqrt(square / (1 - 0.999**number)) + 1e-8)
        value = value - rate * (step + decay * value)
    return value


def adagrad(rate: float, decay: float, every: int) -> np.ndarray:
    value, total = FIRST.astype(np.float64), np.full([3, 4], 0.1)
    for number, grad in enumerate(GRADS.astype(np.float64), 1):
        if number % every == 0:
            total = np.maximum(total * decay, 0.1)
        total = total + grad**2
        value = value - rate * grad / np.sqrt(total)
    return value


CASES: List[Tuple[Callable[[], Any], np.ndarray]] = [
    (lambda: AdamW(0.05, 0.1), adamw(0.05, 0.1)),
    (lambda: AdamAsync(0.05), adamw(0.05, 0.0)),
    (lambda: from_args({"optimizer": "adam_async", "learning_rate": 0.05}), adamw(0.05, 0.0)),
    (lambda: AdagradDecay(0.3, 0.5, 2), adagrad(0.3, 0.5, 2)),
    (lambda: AdagradDecay(lambda: tf.constant(0.3), 0.5, 2), adagrad(0.3, 0.5, 2)),
    (lambda: from_args({"optimizer": "adamw", "learning_rate": 0.05, "weight_decay": 0.1}), adamw(0.05, 0.1)),
    (
        lambda: from_args({"optimizer": "adagrad_decay", "learning_rate": 0.3, "decay_factor": 0.5, "decay_every": 2}),
        adagrad(0.3, 0.5, 2),
    ),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_variables_are_those_of_numpy_whole_and_in_parts(make: Callable[[], Any], expected: np.ndarray) -> None:
    assert is_elementwise(make())
    ways: List[Dict[str, bool]] = [
        {},
        {"is_resource": False},
        {"in_parts": True, "is_resource": False},
        {"sparse": True},
    ]
    for fields in ways:
        np.testing.assert_allclose(trained(make(), **fields), expected, rtol=2e-5, atol=2e-6, err_msg=str(fields))


def test_without_decay_they_are_tensorflows() -> None:
    for ours, theirs in (
        (AdamW(0.05, 0.0), tf.train.AdamOptimizer(0.05)),
        (AdagradDecay(0.3, 1.0, 2), tf.train.AdagradOptimizer(0.3)),
    ):
        np.testing.assert_allclose(trained(ours), trained(theirs), rtol=5e-6, atol=5e-7)


@pytest.mark.parametrize("dtype", [tf.float64, tf.float16, tf.bfloat16], ids=lambda each: each.name)
def test_variables_of_any_float_type_are_trained(dtype: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        grad = tf.placeholder(tf.float32, [3, 4])
        variable = tf.get_variable("w", initializer=tf.cast(FIRST, dtype), use_resource=False)
        step = AdamW(0.05, 0.1).apply_gradients([(tf.cast(grad, dtype), variable)])
        session.run(tf.global_variables_initializer())
        for each in GRADS:
            session.run(step, {grad: each})
        found = session.run(tf.cast(variable, tf.float64))
    np.testing.assert_allclose(found, adamw(0.05, 0.1), rtol=1e-6 if dtype == tf.float64 else 0.05, atol=0.02)


def test_a_row_that_appears_late_begins_as_one_of_the_first_update() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        zero, grad = tf.zeros([3, 4]), tf.constant(GRADS[0])
        usual, own = (
            session.run(updated(each, tf.constant(5000.0), grad, zero, dict.fromkeys(each.slots, zero)))
            for each in (AdamW(0.05), AdamAsync(0.05))
        )
    np.testing.assert_allclose(own[0], -0.05 * np.sign(GRADS[0]), rtol=1e-4)
    assert (np.abs(usual[0]) > 0.15).all() and (own[1]["updates"] == 1).all()


def rows_trained(optimizer: Any) -> np.ndarray:
    """The rows of a table after all steps."""
    with tf.Graph().as_default(), tf.Session() as session:
        grad, rows, *kept = (tf.placeholder(tf.float32, [3, 4]) for _ in range(2 + len(slots_of(optimizer))))
        new = rule_of(optimizer)(tf.constant(1))(grad, rows, kept)
        found = (FIRST, [np.full([3, 4], slot.first, np.float32) for slot in slots_of(optimizer)])
        for each in GRADS:
            found = session.run(new, dict(zip([grad, rows, *kept], [each, found[0], *found[1]])))
        return np.asarray(found[0])


def group_ftrl(rate: float, group: float, l1: float, l2: float) -> np.ndarray:
    value, total, linear = FIRST.astype(np.float64), np.full([3, 4], 0.1), np.zeros([3, 4])
    for grad in GRADS.astype(np.float64):
        linear += grad - (np.sqrt(total + grad**2) - np.sqrt(total)) / rate * value
        total += grad**2
        for row, sums in enumerate(linear):
            above = np.sign(sums) * np.maximum(np.abs(sums) - l1, 0)
            norm = np.sqrt((above**2).sum())
            share = 1 - group * np.sqrt(4) / norm if norm > group * np.sqrt(4) else 0
            value[row] = -share * above / (np.sqrt(total[row]) / rate + 2 * l2)
    return value


def test_a_group_lasso_zeroes_whole_rows() -> None:
    found = rows_trained(GroupFtrl(0.3, 4.0, 0.2, 0.1))
    np.testing.assert_allclose(found, group_ftrl(0.3, 4.0, 0.2, 0.1), rtol=2e-5, atol=2e-6)
    assert {bool((row == 0).all()) for row in found} == {True, False}


def test_without_a_group_lasso_rows_are_those_of_tensorflows_ftrl() -> None:
    expected = trained(tf.train.FtrlOptimizer(0.3, l1_regularization_strength=0.2, l2_regularization_strength=0.1))
    np.testing.assert_allclose(rows_trained(GroupFtrl(0.3, 0.0, 0.2, 0.1)), expected, rtol=2e-5, atol=2e-6)


def test_a_rule_for_rows_updates_no_other_variables() -> None:
    expected = r"GroupFtrl: update: expected only embedding tables, .* found the variable w$"
    with tf.Graph().as_default(), pytest.raises(JobError, match=expected):
        w = tf.get_variable("servers/w", initializer=FIRST)
        GroupFtrl(0.3, 0.1).apply_gradients([(tf.zeros([3, 4]), w)])
    with pytest.raises(JobError, match="GroupFtrl: initial: expected a first sum of squares above 0, found 0"):
        GroupFtrl(0.3, 0.1, initial=0.0)


def test_a_decay_every_half_update_is_refused() -> None:
    with pytest.raises(JobError, match="AdagradDecay: every: expected decays every 1 update or more, found 0"):
        from_args({"optimizer": "adagrad_decay", "decay_every": 0})


class Norm(ByRule):
    def update(self, number: Any, grad: Any, value: Any, slots: Dict[str, Any]) -> Any:
        return value - grad / tf.norm(grad), {}


class Turned(ByRule):
    slots = MappingProxyType({"last": 0.5})

    def update(self, number: Any, grad: Any, value: Any, slots: Dict[str, Any]) -> Any:
        return value - grad, {"last": tf.reverse(slots["last"], [0])}


class Lost(ByRule):
    slots = MappingProxyType({"last": 0.0})

    def update(self, number: Any, grad: Any, value: Any, slots: Dict[str, Any]) -> Any:
        return value - grad, {}


class Grown(ByRule):
    def update(self, number: Any, grad: Any, value: Any, slots: Dict[str, Any]) -> Any:
        return value - grad, {"more": grad}


class Before(ByRule):
    """The value before the newest update, in a slot: what is read must not be what is written."""

    slots = MappingProxyType({"last": 0.0})

    def update(self, number: Any, grad: Any, value: Any, slots: Dict[str, Any]) -> Any:
        return value - 0.1 * grad - 0.01 * slots["last"], {"last": value}


@pytest.mark.parametrize("is_resource", [False, True])
def test_a_slot_may_hold_the_value_before(is_resource: bool) -> None:
    value, last = FIRST.astype(np.float64), np.zeros([3, 4])
    for grad in GRADS:
        value, last = value - 0.1 * grad - 0.01 * last, value
    for _ in range(10):
        np.testing.assert_allclose(trained(Before(), is_resource), value, rtol=1e-5)


class Columns(ByRule):
    by_row = True

    def update(self, number: Any, grad: Any, value: Any, slots: Dict[str, Any]) -> Any:
        return value - tf.reduce_mean(grad, 0, keepdims=True), {}


def test_a_rule_that_mixes_rows_is_refused() -> None:
    with pytest.raises(JobError, match="Columns: update: expected a rule in which each row depends on its own"):
        rows_trained(Columns())


class Weighted(ByRule):
    by_row = True

    def update(self, number: Any, grad: Any, value: Any, slots: Dict[str, Any]) -> Any:
        return value - grad * tf.constant([1.0, 2.0, 3.0]), {}


def test_a_rule_for_rows_of_one_width_gets_rows_of_this_width() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        value, _ = updated(Weighted(), tf.constant(1.0), tf.ones([2, 3]), tf.zeros([2, 3]), {})
        np.testing.assert_array_equal(session.run(value), [[-1, -2, -3]] * 2)


class NoPair(ByRule):
    def update(self, number: Any, grad: Any, value: Any, slots: Dict[str, Any]) -> Any:
        return value - grad


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (NoPair(), "expected a pair of a value and"),
        (Norm(), "Norm: update: expected a rule in which each element depends on its own"),
        (Turned(), "Turned: update: expected a rule in which each element depends on its own"),
        (Lost(), r"expected slots \['last'\], found \[\]"),
        (Grown(), r"expected slots \[\], found \['more'\]"),
    ],
)
def test_a_rule_that_mixes_elements_or_loses_slots_is_refused(made: Any, message: str) -> None:
    with pytest.raises(JobError, match=message):
        trained(made)
