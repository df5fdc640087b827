"""Amounts as people read them."""

import pytest

from launch.view.console import of_bytes, of_seconds


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"), (999, "999 bytes"), (1000, "1.00 kB"), (27_123, "27.1 kB"), (99_960, "100 kB"),
        (999_499, "999 kB"), (999_500, "1.00 MB"), (437_928_960, "438 MB"), (12e9, "12.0 GB"), (5e15, "5000 TB"),
    ],
)  # fmt: skip
def test_bytes_have_three_figures_and_a_unit(number: float, text: str) -> None:
    assert of_bytes(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(1.4, "1.40 s"), (0.9999, "1.00 s"), (0.217, "217 ms"), (0.0029, "2.90 ms"), (3e-6, "3.00 µs"), (61.0, "61.0 s")],
)
def test_seconds_have_three_figures_and_a_unit(seconds: float, text: str) -> None:
    assert of_seconds(seconds) == text
