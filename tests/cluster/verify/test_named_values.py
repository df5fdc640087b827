"""What differs is named with its step, how much of it, and by how much; what has the same bits does not differ."""

import numpy as np
import pytest

from cluster.verify.digests import unlike_batch, unlike_gradient
from cluster.verify.named_values import difference


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_the_same_bits_are_equal_also_where_they_are_no_number() -> None:
    values = {"w": floats(1, np.nan, np.inf), "step": np.int64(7), "none": floats()}
    assert difference(7, values, {name: np.copy(value) for name, value in values.items()}) is None


def test_the_first_variable_that_differs_is_named() -> None:
    found = {"a": floats(1, 2), "b": floats(1, 2, 3), "c": floats(9)}
    expected = {"a": floats(1, 2), "b": floats(1, 2.25, 3.5), "c": floats(0)}
    assert difference(7, found, expected) == (
        "step 7: servers' b differs from one process in 2 of 3 elements, by at most 0.5"
    )


@pytest.mark.parametrize(("one", "other"), [(0.0, -0.0), (1.0, np.nextafter(np.float32(1), np.float32(2)))])
def test_one_bit_is_a_difference(one: float, other: float) -> None:
    text = difference(1, {"w": floats(one)}, {"w": floats(other)})
    assert text is not None and "in 1 of 1 elements" in text


def test_another_shape_or_type_is_a_difference() -> None:
    assert difference(2, {"w": floats(1)}, {"w": floats(1, 1)}) == (
        "step 2: servers' w is float32 [1], and float32 [2] in one process"
    )
    assert difference(2, {"w": floats(1)}, {"w": np.array([1.0])}) is not None


def test_a_variable_that_one_process_lacks_is_never_equal() -> None:
    with pytest.raises(KeyError):
        difference(1, {"w": floats(1)}, {})


def test_the_first_worker_whose_batch_differs_is_named() -> None:
    assert unlike_batch(3, [1, 2, 3], [1, 2, 3]) is None
    assert str(unlike_batch(3, [1, 5, 6], [1, 2, 3])).startswith("worker 1's batch of step 3 differs")


def test_a_gradient_that_differs_is_told_from_a_sum_that_does() -> None:
    assert "worker 1 computed other gradients" in unlike_gradient([1, 5], [1, 2], ["a", "b"])
    assert "the sum or the update differs" in unlike_gradient([1, 2], [1, 2], ["a", "b"])


def test_the_processor_of_the_chief_s_own_host_is_not_blamed() -> None:
    assert "compare the processor" in unlike_gradient([1, 5], [1, 2], ["a", "b"])
    assert "this worker is on the chief's own host" in unlike_gradient([1, 5], [1, 2], ["a", "a"])
