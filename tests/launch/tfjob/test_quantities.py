"""Quantities are read and written as Kubernetes does it."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.tfjob.replica_container import amount, binary


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), ("500m", Fraction(1, 2)), ("4Gi", 4 << 30), ("1.5Gi", 3 << 29), ("1G", 10**9), ("1e3", 1000),
     (".5", 0.5), ("1E", 10**18), ("12E2", 1200), ("128974848", 128974848)],
)  # fmt: skip
def test_a_quantity_is_read(text: str, number: Fraction) -> None:
    assert amount(text) == number


@pytest.mark.parametrize("text", ["", "Gi", "4gi", "four", "-1", "1Gib", "1e", "1 Gi", "1" * 30, "1e999"])
def test_another_text_is_no_quantity(text: str) -> None:
    assert amount(text) is None


@given(st.integers(0, 1 << 60))
def test_bytes_are_read_as_they_are_written(number: int) -> None:
    assert amount(binary(number)) == number


def test_bytes_have_the_largest_suffix_that_divides_them() -> None:
    assert [binary(number) for number in (4 << 30, 1536 << 20, 1000)] == ["4Gi", "1536Mi", "1000"]
