"""Tables, page and lines of plots say what was measured, and nothing else."""

import json
from pathlib import Path
from typing import Any, Dict, List

from tests.benchmarks.speed import report, results, series
from tests.benchmarks.speed.cases import CASES

ROOT = Path(__file__).resolve().parents[3]


def measured(case: str, way: str, *times_ms: float) -> List[Dict[str, Any]]:
    return [
        {"case": case, "way": way, "step_ms": time_ms, "received_mb": 40.5, "sent_mb": 40.25, "busy": 0.5}
        for time_ms in times_ms
    ]


def test_a_row_has_least_median_and_ratios() -> None:
    case = CASES["dedicated"]
    bound = case.bound_ms() or 0
    found = measured("dedicated", "stock", 3 * bound) + measured("dedicated", "ours", bound, 1.5 * bound, 2 * bound)
    cells = report.table(case, found).splitlines()[-1].split(" | ")
    assert cells[1:9] == ["3", f"{bound:.0f}", f"{1.5 * bound:.0f}", "1.50", "0.50", "40.50", "40.25", "50 %"]


def test_a_row_has_what_a_start_took_where_that_was_measured() -> None:
    older, newer = measured("two", "ours", 1, 2)
    newer.update(joined_s=12.4, chief_peak_mb=800.0, worker_peak_mb=600.0, ps_peak_mb=300.0)
    row = report.table(CASES["two"], [older, newer]).splitlines()[-1]
    assert row.endswith("| 12 | 800 | 600 | 300 |")
    assert report.table(CASES["two"], [older]).splitlines()[-1].endswith("% |  |  |  |  |")


def test_what_waits_for_nobody_is_compared_with_what_does_not_either() -> None:
    found = [*measured("two", "stock", 90), *measured("two", "stock-async", 60), *measured("two", "async", 30)]
    ratios = [row.split(" | ")[5] for row in report.table(CASES["two"], found).splitlines()[2:]]
    assert ratios == ["1.00", "1.00", "0.50"]


def test_a_case_without_a_limit_has_no_bound_and_one_without_stock_no_ratio() -> None:
    row = report.table(CASES["unlimited-16"], measured("unlimited-16", "ours", 50)).splitlines()[-1]
    assert row.split(" | ")[4:6] == ["", ""]
    assert "bound" not in report.title(CASES["unlimited-16"])


def test_only_what_was_measured_is_in_the_tables() -> None:
    text = report.tables(measured("two", "ours", 50))
    assert "`two`" in text and "`dedicated`" not in text and "Sync" not in text


def test_a_table_names_the_commits_that_were_measured() -> None:
    found = [dict(each, commit=name) for name in ("1a", "2b+", "1a") for each in measured("two", "ours", 50)]
    assert report.tables(found).splitlines()[0].endswith("; measured at `1a`, `2b+`")
    some = [*found, *measured("two", "stock", 50)]
    assert report.tables(some).splitlines()[0].endswith("`2b+`, a commit that was not recorded")


def test_a_page_gets_its_tables_and_keeps_its_text() -> None:
    text = "before\n<!-- table: two -->\nold\n<!-- end -->\nafter\n"
    once = report.page(text, measured("two", "ours", 50))
    assert once.startswith("before\n<!-- table: two -->\n`two`: 2 workers and 2 ps")
    assert once.endswith("|\n<!-- end -->\nafter\n")
    assert "old" not in once
    assert report.page(once, measured("two", "ours", 50)) == once


def test_a_line_of_a_plot_has_the_medians_in_order() -> None:
    found = measured("dedicated", "ours", 5, 7, 9) + measured("two", "ours", 3) + measured("small", "ours", 1)
    cases = [CASES["dedicated"], CASES["two"], CASES["one"]]
    assert series.step_times(found, cases, lambda case: case.workers) == {"ours": [(2, 3), (4, 7)]}
    assert [at for at, _ in series.bound(cases, lambda case: case.workers)] == [1, 2, 4]


def test_bars_are_over_the_bound_of_float32() -> None:
    bound = CASES["two"].bound_ms() or 0
    assert series.over_bound(measured("two", "ours", 2 * bound), [CASES["two"]]) == {"two": {"ours": 2.0}}


def test_results_are_added_to_those_before(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "speed.json"
    for each in measured("two", "ours", 1, 2):
        results.add(path, each)
    assert [each["step_ms"] for each in results.read(path)] == [1, 2]
    assert len(json.loads(path.read_text())) == 2
