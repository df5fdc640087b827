"""Nothing that differs is taken for equal, and no failure for a refusal."""

from typing import Any, Optional

import numpy as np
import pytest

from cluster.protocol.outcome import Outcome
from tests.differential.reference import Trained
from tests.differential.verdict import BITS, CLOSE, DIFFERENT, REFUSED, Rounding, compare, judge_end

BEFORE = {"w": np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4), "steps": np.array(0, np.int64)}
AFTER = {"w": BEFORE["w"] * np.float32(0.7), "steps": np.array(5, np.int64)}
REFERENCE = Trained(BEFORE, AFTER, AFTER, AFTER)


def kind(rounding: Rounding = Rounding(), **found: Any) -> str:  # noqa: B008 (immutable)
    return compare(REFERENCE, {**AFTER, **found}, rounding).kind


def test_the_same_bits_are_equal() -> None:
    assert kind() == BITS


def test_another_order_of_a_sum_is_equal_but_not_to_the_bit() -> None:
    assert kind(w=AFTER["w"] * np.float32(1 + 5e-7)) == CLOSE


@pytest.mark.parametrize("off", [1e-4, -1e-4, np.nan, np.inf])
def test_one_number_that_is_off_is_found(off: float) -> None:
    w = AFTER["w"].copy()
    w[2, 1] += off
    verdict = compare(REFERENCE, {**AFTER, "w": w})
    assert verdict.kind == DIFFERENT and verdict.text.startswith("w[2, 1]: ")


def test_a_variable_that_is_missing_or_has_another_shape_or_type_is_found() -> None:
    assert compare(REFERENCE, {"w": AFTER["w"]}).kind == DIFFERENT
    assert kind(w=AFTER["w"][:2]) == DIFFERENT
    assert kind(w=AFTER["w"].astype(np.float64)) == DIFFERENT


def test_integers_have_no_tolerance() -> None:
    assert kind(steps=np.array(6, np.int64)) == DIFFERENT


def test_with_bfloat16_on_the_wire_a_master_may_be_a_little_off_but_has_all_of_its_bits() -> None:
    nearly = AFTER["w"] * np.float32(1.001)
    rounded = (AFTER["w"].view(np.uint32) & 0xFFFF0000).view(np.float32)
    assert kind(Rounding("bfloat16"), w=nearly) == CLOSE
    assert kind(w=nearly) == DIFFERENT
    assert kind(Rounding("bfloat16"), w=rounded) == DIFFERENT
    assert kind(Rounding("bfloat16"), w=BEFORE["w"]) == DIFFERENT


def test_a_model_that_goes_off_by_itself_when_it_begins_a_little_off_may_do_so_here() -> None:
    off = {**AFTER, "w": AFTER["w"] + np.float32(1e-3)}
    swaying, nearly = Trained(BEFORE, AFTER, off, AFTER), {**AFTER, "w": AFTER["w"] + np.float32(1.5e-3)}
    assert compare(swaying, nearly).kind == CLOSE
    assert compare(REFERENCE, nearly).kind == DIFFERENT
    assert compare(swaying, {**AFTER, "w": AFTER["w"] + np.float32(3e-3)}).kind == DIFFERENT


def test_of_a_model_that_blows_up_each_variable_may_be_off_by_the_share_that_one_is() -> None:
    def values(w: float, b: float) -> Any:
        return {"w": np.full([4], w, np.float32), "b": np.full([], b, np.float32)}

    wild = Trained(values(0, 0), values(30, 0.2), values(31, 0.2), values(30, 0.2))
    calm = Trained(values(0, 0), values(30, 0.2), values(30, 0.2), values(30, 0.2))
    assert compare(wild, values(30, 0.21)).kind == CLOSE
    assert compare(calm, values(30, 0.21)).kind == DIFFERENT
    assert compare(wild, values(30, 0.22)).kind == DIFFERENT


def test_with_bfloat16_a_model_may_make_of_a_rounding_what_it_makes_of_one_by_itself() -> None:
    off, nearly = ({**AFTER, "w": AFTER["w"] + np.float32(by)} for by in (0.1, 0.15))
    assert compare(Trained(BEFORE, AFTER, AFTER, off), nearly, Rounding("bfloat16")).kind == CLOSE
    assert compare(Trained(BEFORE, AFTER, AFTER, off), nearly).kind == DIFFERENT
    assert compare(Trained(BEFORE, AFTER, off, AFTER), nearly, Rounding("bfloat16")).kind == DIFFERENT


def test_of_very_many_elements_a_few_may_have_gone_to_the_other_side_of_a_kink() -> None:
    before = {"w": np.linspace(-1, 1, 30_000, dtype=np.float32)}
    after = {"w": before["w"] * np.float32(0.7)}
    reference, found = Trained(before, after, after, after), after["w"].copy()
    found[[7, 70, 700]] += np.float32(0.1)
    assert compare(reference, {"w": found}).kind == CLOSE
    assert compare(reference, {"w": found + np.float32(1) * (np.arange(30_000) == 7)}).kind == DIFFERENT
    found[7000] += np.float32(0.1)
    assert compare(reference, {"w": found}).kind == DIFFERENT


def test_what_sums_gradients_in_float16_may_be_off_by_its_last_bit() -> None:
    moved = AFTER["w"] - BEFORE["w"]
    for share, expected in ((2**-10, CLOSE), (2**-8, DIFFERENT)):
        assert kind(Rounding(half=True), w=AFTER["w"] + moved * np.float32(share)) == expected
        assert kind(w=AFTER["w"] + moved * np.float32(share)) == DIFFERENT


@pytest.mark.parametrize(
    ("cause", "step", "expected"),
    [
        ("model.py:12: a constraint is not taken with train.wire; write it so", None, REFUSED),
        ("train.backup_workers: expected none with such an optimizer", None, REFUSED),
        ("model.py:12: a constraint is not taken", 0, DIFFERENT),
        ("model.py:12: ValueError: shapes do not match", None, DIFFERENT),
        ("ValueError: shapes do not match", None, DIFFERENT),
        ("something is wrong somewhere", None, DIFFERENT),
    ],
)
def test_a_refusal_is_a_sentence_of_this_project_before_the_first_step(
    cause: str, step: Optional[int], expected: str
) -> None:
    verdict = judge_end([Outcome(True, 5), Outcome(False, step, cause, retry=False)])
    assert verdict is not None and verdict.kind == expected


def test_who_trains_to_the_end_is_judged_by_variables() -> None:
    assert judge_end([Outcome(True, 5)]) is None
