"""Tables of results."""

from typing import Any, Dict

from tests.benchmarks.recommend.report import page, tables


def result(system: str, speed: float, case: str = "dlrm-2x4") -> Dict[str, Any]:
    return {
        "case": case, "system": system, "load_before": 1.0, "examples_per_s": speed, "examples_per_cpu_s": speed / 2,
        "cores": 2.0, "auc": 0.61, "received_kb": 700.0, "sent_kb": 800.0, "peaks_mb": {"ps": 300.0, "worker": 500.0},
        "first_step_s": 30.0,
    }  # fmt: skip


def test_ratios_are_to_the_best_of_tensorflows_own_ways_by_medians_in_the_same_case() -> None:
    speeds = {"ours": (300, 100, 200), "stock": (50,), "stock-unique": (80, 120, 100), "alone": (999,)}
    results = [result(name, speed) for name, found in speeds.items() for speed in found]
    text = tables([*results, result("stock", 1.0, "dlrm-2x4-100")])
    assert "(`ours`) | 3 | 200 | 2.00 | 100 | 2.00 | 2.00 | 0.6100 | 700 | 800 | 300 | 500 | 30 |" in text
    assert "(`stock`) | 1 | 50 | 0.50 |" in text and "DLRM, 2 ps and 4 workers, 100 Mbit/s a host" in text


def test_cases_of_two_systems_are_rows_of_one_table() -> None:
    results = [result(name, speed, "dlrm-4x1") for name, speed in (("ours", 300.0), ("stock", 200.0))]
    text = tables([*results, result("alone", 1.0)])
    assert "| 4 ps, 1 worker | 300 | 200 | 1.50 | 1.50 | 800 | 800 | 0.6100 | 0.6100 | 30 | 30 | 300 | 300 |" in text
    assert text.count("(`") == 1


def test_a_page_gets_new_tables_and_keeps_its_text() -> None:
    text = page("before\n<!-- tables -->\nold\n<!-- end -->\nafter", [result("ours", 5.0)])
    assert text.startswith("before\n") and text.endswith("\nafter") and "old" not in text and "(`ours`)" in text
