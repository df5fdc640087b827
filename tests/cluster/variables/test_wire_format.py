"""Numbers of 16 bits on the wire: what float16 takes from a gradient is not lost, what bfloat16 takes is little."""

from typing import Any, Iterator, List

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.variables.layout import ITEM_BYTES
from cluster.variables.wire_format import Wire

HALVES = [name for name in ITEM_BYTES if name != "float32"]


@pytest.fixture
def session() -> Iterator[Any]:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def sent(session: Any, wire: Wire, gradients: List[List[float]]) -> np.ndarray:
    """What the server sees of them, one row each."""
    grad = tf.placeholder(tf.float32, [len(gradients[0])])
    came = wire.widen(wire.narrow_gradient("g", grad))
    session.run(wire.reset)
    return np.array([session.run(came, {grad: values}) for values in gradients])


def test_float32_travels_as_it_is(session: Any) -> None:
    wire = Wire()
    value = tf.constant([1.0])
    assert wire.narrow(value) is wire.widen(value) is wire.narrow_gradient("g", value) is value


@pytest.mark.parametrize("name", HALVES)
def test_16_bits_travel_and_arrive_as_float32(session: Any, name: str) -> None:
    wire = Wire(name)
    narrow = wire.narrow(tf.constant([1.0, -2.5]))
    assert narrow.dtype.size == 2
    assert session.run(wire.widen(narrow)).tolist() == [1.0, -2.5]


def test_what_bfloat16_cannot_hold_arrives_as_tensorflow_rounds_it(session: Any) -> None:
    wire = Wire("bfloat16")
    numbers = [float("inf"), -float("inf"), float("nan"), -0.0, 1e-45, 1.00390625, 1.01171875, -3.3895314e38, 1e-39]
    narrow = wire.narrow(tf.constant(numbers))
    cast, came = session.run([tf.cast(narrow, tf.float32), wire.widen(narrow)])
    assert came.tobytes() == cast.tobytes()


def test_float16_gradients_that_arrive_add_up_to_those_that_were_given(session: Any) -> None:
    gradients = np.random.RandomState(0).normal(size=[200, 50]).astype(np.float32)
    came = sent(session, Wire("float16"), gradients.tolist())
    assert np.abs(came - gradients).max() > 1e-4  # each by itself is rounded
    rounding = 2.0**-11 * np.abs(came).max()  # of the last one, which is still kept
    np.testing.assert_allclose(came.sum(0), gradients.sum(0, dtype=np.float64), atol=2 * rounding)


def test_a_bfloat16_gradient_arrives_rounded_whatever_came_before(session: Any) -> None:
    gradients = np.random.RandomState(0).normal(size=[50]).astype(np.float32)
    wire = Wire("bfloat16")
    came = sent(session, wire, [gradients.tolist()] * 2)
    assert wire.reset == []
    assert (came[0] == came[1]).all()
    assert (np.abs(came[0] - gradients) <= 2.0**-8 * np.abs(gradients)).all()
    assert abs((came[0] - gradients).mean()) < 2.0**-10  # up as often as down


def test_gradients_too_small_or_too_large_for_float16_arrive_in_the_end(session: Any) -> None:
    small, large = 1e-9, 1e5
    came = sent(session, Wire("float16"), [[small, large]] + [[small, 0.0]] * 99)
    assert came[0, 0] == 0 and came[0, 1] < large
    np.testing.assert_allclose(came.sum(0), [100 * small, large], rtol=0.5)
    assert came[1:, 1].sum() > 0


def test_what_was_kept_is_forgotten_on_request(session: Any) -> None:
    wire = Wire("float16")
    first = sent(session, wire, [[1.001]])
    assert sent_again(session, wire) == first


def sent_again(session: Any, wire: Wire) -> np.ndarray:
    with tf.variable_scope("again"):
        return sent(session, wire, [[1.001]])
