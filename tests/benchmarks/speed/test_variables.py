"""A model of variables has the size that is asked for."""

from typing import Callable, List

import numpy as np
import pytest

from tests.benchmarks.speed.variables import even, odd, uneven


def bytes_of(shapes: List[List[int]]) -> List[int]:
    return [4 * int(np.prod(shape)) for shape in shapes]


@pytest.mark.parametrize("shapes", [even, uneven])
@pytest.mark.parametrize(("megabytes", "number"), [(8, 8), (40, 16), (40, 300), (1, 2)])
def test_the_bytes_and_the_number_are_as_asked(
    shapes: Callable[[float, int], List[List[int]]], megabytes: float, number: int
) -> None:
    assert sum(bytes_of(shapes(megabytes, number))) == megabytes * 1e6
    assert len(shapes(megabytes, number)) == number
    assert min(bytes_of(shapes(megabytes, number))) > 0


def test_even_variables_are_alike_but_for_what_rounding_leaves() -> None:
    assert bytes_of(even(40, 16)) == [2_500_000] * 16


def test_the_largest_of_uneven_variables_has_60_percent() -> None:
    assert max(bytes_of(uneven(40, 16))) == 24_000_000


def test_odd_variables_are_as_large_as_asked_and_some_much_larger_than_others() -> None:
    sizes = bytes_of(odd(36.5, 47))
    assert sum(sizes) == 36.5e6 and len(sizes) == 47
    assert max(sizes) > 20 * min(sizes) > 0
