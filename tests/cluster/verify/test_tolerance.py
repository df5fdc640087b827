"""Rounding, and what a step makes of it, is allowed; what is larger is not."""

from typing import Any

import numpy as np
import pytest

from cluster.verify.own_gradients import Rows, mean
from cluster.verify.plain_step import Tolerance, beside

EPS = float(np.finfo(np.float32).eps)


def values(*numbers: float, dtype: Any = np.float32) -> Any:
    return {"w": np.array(numbers, dtype)}


def test_some_last_bits_of_a_value_or_of_its_way_are_rounding() -> None:
    tolerance = Tolerance(EPS, values(1, 0), values(1.5, 1e-9))
    assert not tolerance.unlike("w", np.float32([1.5 + 4 * EPS, 1e-9 + 8 * EPS])).any()
    assert list(tolerance.unlike("w", np.float32([1.5001, 1e-9]))) == [True, False]


def test_an_element_that_sways_by_itself_may_be_elsewhere_and_no_other_may() -> None:
    tolerance = Tolerance(EPS, values(1, 1, 1), values(1.1, 1.1, 1.1))
    tolerance.widen(values(1.1, 0.9, 1.1))
    assert list(tolerance.unlike("w", np.float32([1.1, 0.9, 0.9]))) == [False, False, True]


@pytest.mark.parametrize("other", [values(1), values(1, 2, dtype=np.float64)["w"].reshape(2, 1)])
def test_another_shape_or_type_is_never_alike(other: Any) -> None:
    found = other["w"] if isinstance(other, dict) else other
    assert Tolerance(EPS, values(1, 2), values(1, 2)).unlike("w", found).all()


def test_numbers_that_are_not_finite_are_alike_where_they_are_the_same() -> None:
    tolerance = Tolerance(EPS, values(1, 1, 1), values(np.nan, np.inf, 1))
    assert list(tolerance.unlike("w", np.float32([np.nan, np.inf, np.nan]))) == [False, False, True]


def test_whole_numbers_have_no_rounding() -> None:
    step = {"w": np.array(7)}
    assert Tolerance(EPS, step, step).unlike("w", np.array(8)).all()


def test_values_beside_others_are_off_by_some_last_bits_where_they_are_asked_to_be() -> None:
    found = beside({"w": np.float32([1, 2]), "n": np.float32([3])}, ["w"], EPS, seed=1)
    assert found["n"] == 3 and np.all(found["w"] != [1, 2]) and np.allclose(found["w"], [1, 2], rtol=1e-6)


def test_the_mean_of_gradients_counts_each_part_by_its_examples() -> None:
    rows = [Rows(np.float32([[4]]), np.array([0])), Rows(np.float32([[8]]), np.array([2]))]
    dense, sparse = mean([[np.float32(1), rows[0]], [np.float32(5), rows[1]]], [3, 1])
    assert dense == 2 and sparse.values.tolist() == [[3], [2]] and sparse.indices.tolist() == [0, 2]
