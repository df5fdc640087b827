"""Two runs are compared: their curves over each other, their results, and the arguments that differ."""

import re
from html.parser import HTMLParser
from typing import Any, List

import pytest

from launch.curve.comparison import ComparedRun, lines, result
from launch.curve.comparison_page import document
from launch.curve.overlay import BOTH, overlay
from launch.status.run import RunRecord
from launch.status.run_history import CurvePoint
from launch.view.differences import differing
from tests.launch.page.examples import HOSTILE
from tests.support.launch.statuses import history


def curve(losses: List[float], apart: int = 1) -> List[CurvePoint]:
    return [CurvePoint(1 + number * apart, loss) for number, loss in enumerate(losses)]


def run(name: str = "r-1", losses: Any = (2.0, 1.0), **fields: Any) -> ComparedRun:
    return ComparedRun(name, "r", state="succeeded", loss=0.5, history=history(curve(losses)), **fields)


def test_a_curve_begins_and_ends_where_its_steps_do_and_has_no_gap() -> None:
    drawn = overlay([curve([3.0, 2.0, 1.0])], 40, 8)
    assert "  3 ┤●" in drawn[0] and " 1 ┤" in drawn[7] and drawn[7].endswith("●")
    assert re.fullmatch(r" +step 1 +step 3", drawn[-1]) and max(map(len, drawn)) == 40
    body = [line[line.index(next(c for c in line if c in "┤│")) + 1 :].ljust(34)[:33] for line in drawn[:8]]
    assert all("●" in "".join(column) for column in zip(*body))


def test_two_curves_have_one_scale_and_a_mark_where_they_meet() -> None:
    drawn = overlay([curve([4.0, 0.0]), curve([4.0, 4.0], apart=2)], 30, 5)
    assert drawn[0].split("┤")[1].startswith(BOTH) and drawn[0].endswith("○")
    assert drawn[-1].endswith("step 3") and "●" in drawn[4] and "○" not in drawn[4]


def test_steep_first_losses_leave_room_for_the_rest() -> None:
    drawn = overlay([curve([90.0, *(1 - 0.02 * step for step in range(39))])], 60, 10)
    assert sum("●" in line for line in drawn) == 10 and drawn[0].startswith("  0.94 ┤")


@pytest.mark.parametrize("width", [1, 20, 80])
def test_a_drawing_of_one_point_or_of_equal_ones_fits_its_width(width: int) -> None:
    assert overlay([[], []], width) == []
    for drawn in (overlay([curve([1.0])], width), overlay([curve([1.0] * 9)], width)):
        assert "●" in "".join(drawn) and max(map(len, drawn[:-2])) <= max(width, 6)


def test_the_arguments_that_differ_have_the_value_of_each_run() -> None:
    one = RunRecord("r-1", "r", args={"hidden": 128, "rate": 0.1}, train={"batch_size": 64, "steps": 9})
    other = RunRecord("r-2", "r", args={"rate": 0.1}, train={"batch_size": 32, "steps": 9})
    assert differing([one, other]) == {"hidden": [128, None], "train.batch_size": [64, 32]}
    assert differing([one]) == differing([]) == {}


def test_the_result_is_the_metric_of_best_or_the_first_that_is_no_loss() -> None:
    held_out = {"loss": 0.1, "accuracy": 0.9}
    assert result(run(best={"step": 8, "auc": 0.7}, metrics=held_out)) == ("auc", 0.7)
    assert result(run(best={"step": 8, "loss": 0.2}, metrics=held_out)) == ("loss", 0.2)
    assert result(run(metrics=held_out)) == ("accuracy", 0.9) and result(run(metrics={"loss": 0.1})) is None


def test_a_comparison_has_the_curves_and_below_them_a_table() -> None:
    found = lines([run(args={"rate": 0.1}), run("r-2", (2.0, 3.0), args={"rate": 0.2}, metrics={"auc": 0.5})], 60)
    assert [re.split("  +", line.strip()) for line in found[-5:]] == [
        ["● r-1", "○ r-2"], ["state", "succeeded", "succeeded"], ["loss", "0.5", "0.5"], ["auc", "-", "0.5"],
        ["rate", "0.1", "0.2"],
    ]  # fmt: skip
    assert lines([run(losses=()), run("r-2", ())], 60)[0] == "no curve: neither run has recorded a loss"


class Elements(HTMLParser):
    """The names of a page's elements."""

    def __init__(self, page: str):
        super().__init__()
        self.names: List[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.names.append(tag)


def test_the_page_has_both_curves_and_no_text_of_a_host_becomes_markup() -> None:
    plain = document([run(args={"rate": "a"}), run("r-2", args={"rate": "b"})])
    hostile = document([run(HOSTILE, args={"rate": HOSTILE}), run("r-2", args={"rate": "b"})])
    assert Elements(hostile).names == Elements(plain).names and Elements(plain).names.count("path") == 2
    assert "script" not in Elements(plain).names and "default-src 'none'" in plain
    assert Elements(document([run(losses=(1.0,)), run(losses=())])).names.count("circle") == 1
