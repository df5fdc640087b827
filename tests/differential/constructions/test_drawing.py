"""A seed is always the same construction and manner; the seeds of a night meet every row, and every value."""

import hashlib
import json
from typing import Any

import pytest

from tests.differential.constructions.axes import AXES, from_json, sensible
from tests.differential.constructions.drawing import drawn
from tests.differential.constructions.manners import BATCH, MANNERS, from_request, legal
from tests.differential.constructions.rows import ROWS, examples, rows_of

NIGHT = [drawn(number) for number in range(1000)]
FEWEST = 10  # seeds of a night that meet a row
DIGEST = "5c50b0b2bd3be1628288e684f061a00f1491037a"  # of a night, alike on every runtime; new with other weights


def test_a_seed_is_the_same_in_any_process_and_on_any_python() -> None:
    words = json.dumps([each.request() for each in NIGHT], sort_keys=True)
    assert hashlib.sha1(words.encode()).hexdigest() == DIGEST


@pytest.mark.parametrize("name", ROWS)
def test_the_grammar_spells_every_row_and_a_night_meets_it(name: str) -> None:
    assert examples(name)
    assert sum(ROWS[name].is_met_by(each) for each in NIGHT) >= FEWEST


@pytest.mark.parametrize("axis", [*AXES, *MANNERS])
def test_a_night_draws_every_value(axis: str) -> None:
    found = {getattr(each.construction if axis in AXES else each.way, axis) for each in NIGHT}
    assert found == set({**AXES, **MANNERS}[axis])


def test_most_seeds_meet_one_row_or_none_so_that_one_fault_does_not_hide_another() -> None:
    assert sum(len(rows_of(each)) <= 1 for each in NIGHT) > len(NIGHT) / 3


def test_what_is_drawn_is_sensible_and_legal_and_divides_its_batch() -> None:
    for each in NIGHT:
        assert sensible(each.construction) == each.construction
        assert legal(each.way, each.construction) == each.way
        assert each.same or each.per_tower * each.way.parts == BATCH


def test_a_draw_is_the_same_after_json() -> None:
    for each in NIGHT[:50]:
        again: Any = json.loads(json.dumps(each.request()))
        assert from_request(again) == each
        assert from_json(each.construction.as_json()) == each.construction


def test_an_axis_may_be_held() -> None:
    assert {drawn(number, {"towers": [2]}).way.towers for number in range(20)} == {2}
