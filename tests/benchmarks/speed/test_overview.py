"""A table of many cases has a row for each that was measured, and a column for each way."""

import pytest

from tests.benchmarks.speed import overview
from tests.benchmarks.speed.cases import CASES
from tests.benchmarks.speed.test_report import measured

BOUND = CASES["two-odd"].bound_ms() or 0


def test_a_cell_has_the_median_what_it_is_of_the_bound_and_the_processors() -> None:
    found = measured("two-odd", "ours", BOUND, 1.5 * BOUND, 2 * BOUND) + measured("two-odd-unlimited", "stock", 90)
    table = overview.overview(found).splitlines()
    assert table[0] == "| case | workers + ps | Mbit/s | bound ms | `stock` | `ours` |"
    assert table[2:] == [
        f"| `two-odd` | 2 + 2 | 250 | {BOUND:.0f} |  | {1.5 * BOUND:.0f}, 1.50, 50 % |",
        "| `two-odd-unlimited` | 2 + 2 | no limit |  | 90, 50 % |  |",
    ]


def test_sixteen_bits_are_compared_with_their_own_bound() -> None:
    assert ", 2.00, " in overview.overview(measured("two-odd", "bfloat16", BOUND))


@pytest.mark.parametrize(("pattern", "rows"), [("two-odd*", 2), ("*-odd", 2), ("*", 3)])
def test_only_cases_of_the_pattern_are_in_it(pattern: str, rows: int) -> None:
    found = [each for case in ("two-odd", "two-odd-100", "four-odd") for each in measured(case, "ours", 1)]
    assert len(overview.overview(found, pattern).splitlines()) == 2 + rows


def test_a_page_gets_its_table_and_keeps_its_text() -> None:
    once = overview.page(
        "before\n<!-- overview: two-odd* -->\nold\n<!-- end -->\nafter\n", measured("two-odd", "ours", 5)
    )
    assert once.startswith("before\n<!-- overview: two-odd* -->\n| case |")
    assert once.endswith("|\n<!-- end -->\nafter\n") and "old" not in once
    assert overview.page(once, measured("two-odd", "ours", 5)) == once
