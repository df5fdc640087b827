"""Runs are a row each that fits 80 columns, and a line below for what went wrong."""

from dataclasses import replace

import pytest

from launch.status.run import RunRecord
from launch.verbs.runs import table_lines

LIVE = RunRecord(
    "digits-20261121-100210", "digits", user="anna@workstation-12", lead="gpu01", state="running",
    started="2026-11-21T10:02:12+00:00", updated="2026-11-21T10:02:51+00:00", global_step=1200, steps=2000,
)  # fmt: skip
OVER = replace(
    LIVE, run="digits-20261120-155902", state="failed", cause="worker:1@gpu02 killed by SIGKILL: out of memory, " * 3,
    started="2026-11-20T15:59:04+00:00", ended="2026-11-20T18:02:07+00:00", incidents=3,
)  # fmt: skip


def test_a_table_of_80_columns_has_every_column() -> None:
    assert table_lines([LIVE, OVER], 80) == [
        "run                     state    started         took      steps  by",
        "digits-20261121-100210  running  11-21 10:02   39.0 s  1200/2000  anna@workstat…",
        "digits-20261120-155902  failed   11-20 15:59  2:03:03  1200/2000  anna@workstat…",
        "  3 incidents; worker:1@gpu02 killed by SIGKILL: out of memory, worker:1@gpu02 …",
    ]


@pytest.mark.parametrize("width", [24, 40, 60, 80, 120])
def test_no_line_is_longer_than_the_terminal_and_no_name_is_cut(width: int) -> None:
    found = table_lines([LIVE, OVER], width)
    assert max(map(len, found)) <= width
    assert [line[:22] for line in found[1:3]] == [LIVE.run, OVER.run]


def test_a_wide_terminal_shows_the_share_of_effective_time() -> None:
    heading, first, second, _ = table_lines([LIVE, replace(OVER, effective_share=0.874)], 100)
    assert "  effective  by" in heading and "          -  anna@" in first and "       87 %  anna@" in second


def test_loss_result_and_the_arguments_that_differ_are_shown_where_a_run_has_them() -> None:
    best = replace(LIVE, loss=0.21, best={"step": 800, "auc": 0.8123}, args={"rate": 0.1, "hidden": 64})
    other = replace(OVER, incidents=0, cause=None, args={"rate": 0.2, "hidden": 64})
    heading, first, own, _, own_of_other = table_lines([best, other], 120)
    assert "loss  result" in heading and "0.21  auc 0.8123" in first
    assert (own, own_of_other) == ("  rate 0.1", "  rate 0.2")
    assert len(table_lines([best, replace(other, name="another", run="another-1")], 120)) == 3


def test_the_run_that_a_run_has_continued_is_named() -> None:
    one = replace(LIVE, continues=OVER.run, began_at=840)
    assert table_lines([one])[2] == f"  continues {OVER.run} from its checkpoint of step 840"


def test_outside_a_terminal_nothing_is_cut() -> None:
    found = table_lines([LIVE, OVER])
    assert found[1].endswith("anna@workstation-12") and found[3] == f"  3 incidents; {OVER.cause}"


def test_what_is_not_known_is_a_dash_and_an_unknown_state_has_its_reason() -> None:
    (_, row, reason) = table_lines([RunRecord("r-1", "r", lead="gpu01")])
    assert row.split() == ["r-1", "unknown", "-", "-", "-", "-", "-"]
    assert reason == "  state unknown: expected the lead's record on gpu01, found none"


def test_a_command_has_no_last_step() -> None:
    assert table_lines([replace(LIVE, steps=None)])[1].split()[6] == "1200"
