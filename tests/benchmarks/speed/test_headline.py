"""The chart of the README shows the medians of the results that the documentation has, and its bounds as computed."""

import pytest

from tests.benchmarks.speed import headline, results
from tests.benchmarks.speed.test_report import measured
from tests.support import ROOT

DOCS = ROOT / "docs" / "measurements" / "speed"


def test_the_chart_of_the_docs_is_drawn_from_the_results_of_the_docs() -> None:
    assert (DOCS / "headline.svg").read_text() == headline.chart(results.read(DOCS / "speed.json"))


def test_a_bar_is_the_median_of_its_way_and_a_bound_is_hollow() -> None:
    found = measured("four-odd", "ours", 3, 5, 4000) + measured("four-odd", "stock", 8) + measured("four", "ours", 1)
    rows = headline.bars(found)
    assert [(bar.step_ms, bar.computed) for bar in rows[:2]] == [(8, False), (5, False)]
    assert all(bar.computed for bar in rows[2:])
    assert headline.chart(found).count("stroke-dasharray") == 2


def test_a_ring_of_four_takes_at_least_half_as_long_again_as_four_ps() -> None:
    ring, servers = headline.bars(measured("four-odd", "ours", 1) + measured("four-odd", "stock", 1))[2:]
    assert ring.step_ms == pytest.approx(1.5 * servers.step_ms)
    assert servers.step_ms == pytest.approx(headline.CASE.bound_ms() or 0)
