"""Step, loss and rate of a foreign program are read from its newest lines, whatever else these have."""

import math
from typing import Any, Dict, Optional, Sequence

import pytest

from cluster.protocol.progress_lines import Read, compiled, mistake_in, read_json, read_log

KERAS = r"(?P<step>\d+)/\d+ .*- loss: (?P<loss>\S+)"
BENCHMARKS = r"^(?P<step>\d+)\timages/sec: (?P<rate>[\d.]+) .*\t(?P<loss>\S+)$"


def of(expression: str, *lines: str) -> Read:
    return read_log(lines, compiled(expression))


@pytest.mark.parametrize(
    ("expression", "line", "values"),
    [
        (r"step (?P<step>\d+).*loss (?P<loss>[0-9.e+-]+)", "I step 12: loss 3e-1", {"step": 12, "loss": 0.3}),
        (KERAS, " 10/100 [==>...] - ETA: 3s - loss: 0.5000", {"step": 10, "loss": 0.5}),
        (BENCHMARKS, "10\timages/sec: 88.5 +/- 0.0 (jitter = 0.0)\t7.25", {"step": 10, "rate": 88.5, "loss": 7.25}),
        (r"iter=(?P<step>[\d,]+)", "iter=1,234,567", {"step": 1234567}),
        (r"(?P<step>\S+) done", "1e3 done", {"step": 1000}),
    ],
)
def test_a_line_of_a_log_is_read_by_its_groups(expression: str, line: str, values: Dict[str, float]) -> None:
    assert of(expression, "starting", line, "saved") == Read(values)


def test_the_newest_line_counts_and_an_older_one_only_for_what_it_lacks() -> None:
    either = r"step (?P<step>\d+)|loss (?P<loss>\S+)"
    assert of(either, "loss 9", "step 1", "loss 0.5", "step 2").values == {"step": 2, "loss": 0.5}


@pytest.mark.parametrize("text", ["-1", "1.5", "abc", "9" * 30, "9" * 3000, "nan", "inf", "\u00b2"])
def test_what_is_no_step_is_a_problem_and_no_number(text: str) -> None:
    read = of(r"step (?P<step>\S+)", f"step {text}")
    assert read.values == {} and read.problems["step"][:2] == ("a whole number from 0", text)


@pytest.mark.parametrize("name", ["step", "loss", "rate"])
@pytest.mark.parametrize("number", ["1" + 400 * "0", "-1" + 4000 * "0"])
def test_a_whole_number_of_hundreds_of_digits_is_a_problem_and_no_crash(name: str, number: str) -> None:
    read = read_json(['{"step": 3, "loss": 1, "rate": 1}', f'{{"{name}": {number}}}'])
    assert read.values == {"step": 3, "loss": 1.0, "rate": 1.0} and list(read.problems) == [name]


def test_half_a_character_in_json_is_a_problem_whose_text_every_log_can_have() -> None:
    assert read_json(['{"step": "\\ud800"}']).problems["step"].found == "?"


@pytest.mark.parametrize("loss", ["1e30", "1" + 30 * "0", "-2.5e19"])
def test_a_loss_that_diverges_is_a_number_however_large(loss: str) -> None:
    for read in (read_json([f'{{"loss": {loss}}}']), of(r"(?P<step>\d+) (?P<loss>\S+)", f"7 {loss}")):
        assert read.values["loss"] == float(loss) and not read.problems


@pytest.mark.parametrize(("text", "is_expected"), [("nan", True), ("-inf", True), ("0,3", False), ("1e999", True)])
def test_a_loss_may_be_any_number(text: str, is_expected: bool) -> None:
    loss = of(r"step (?P<step>\d+) (?P<loss>\S+)", f"step 1 {text}").values.get("loss")
    assert (loss is not None and not math.isfinite(loss)) is is_expected


def test_a_rate_is_a_finite_number_from_zero() -> None:
    assert [of(r"(?P<rate>\S+)", text).values.get("rate") for text in ("nan", "-3", "inf", "4")] == [None] * 3 + [4.0]


@pytest.mark.parametrize(
    ("lines", "values"),
    [
        (['{"step": 12, "loss": 0.3, "rate": 88.0}'], {"step": 12, "loss": 0.3, "rate": 88.0}),
        (['{"step": 1, "loss": 9}', '{"step": 12.0, "lr": [1]}'], {"step": 12, "loss": 9.0}),
        (['{"step": 1}', '{"step": true}', '{"step": null}', '{"step": "x"}', "", "[1]", "{"], {"step": 1}),
        (["[" * 4000, '{"step": -1}', '{"step": 1e400}', "\x00\xff", '"' * 9], {}),
        (['{"step": 3, "loss": NaN}'], {"step": 3, "loss": math.nan}),
    ],
)
def test_lines_of_json_are_read_whatever_else_a_program_writes(lines: Sequence[str], values: Dict[str, Any]) -> None:
    assert repr(read_json(lines).values) == repr({**values})


def test_the_newest_line_that_is_no_json_is_named() -> None:
    assert read_json(["first", '{"step": 1}', "last"]).problems["progress.jsonl"].found == "last"


@pytest.mark.parametrize(
    ("expression", "expected", "found"),
    [
        (r"step (\d+", "a regular expression of Python", "missing ), unterminated subpattern at position 5"),
        (r"step (?P<step>*)", "a regular expression of Python", "nothing to repeat at position 14"),
        ("a{9999999999999999999}", "a regular expression of Python", "the repetition number is too large"),
        (r"step (\d+)", "a group named step", "no named group"),
        (r"(?P<loss>\d+)", "a group named step", "loss"),
        (r"(?P<step>\d+) (?P<los>\d+)", "the groups step, loss, rate", "the group 'los'"),
    ],
)
def test_an_expression_that_could_find_no_step_is_refused(expression: str, expected: str, found: str) -> None:
    told = mistake_in(expression)
    assert told is not None and (told.expected, told.found) == (expected, found)


@pytest.mark.parametrize("expression", [KERAS, BENCHMARKS, r"(?P<step>\d+)", "(?P<step>[[a])"])
def test_others_are_taken(expression: str) -> None:
    nothing: Optional[object] = mistake_in(expression)
    assert nothing is None
