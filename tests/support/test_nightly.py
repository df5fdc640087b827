"""``make test`` takes a few values of a parameter, and ``make nightly`` those that it leaves out, each exactly once."""

from types import SimpleNamespace
from typing import Dict, List

import pytest

from tests import conftest
from tests.support import ROOT
from tests.support.nightly import few


class Item:
    """A test as pytest collects it, of a fast file."""

    path = ROOT / "tests/test_size.py"

    def __init__(self, name: str, marks: List[str]):
        self.name, self.get_closest_marker = name, marks.count


def selected(marks: Dict[str, List[str]], **options: bool) -> List[str]:
    """The names of the tests with these marks that pytest would run."""
    items = [Item(name, of) for name, of in marks.items()]
    config = SimpleNamespace(
        getoption=lambda name: options.get(name, False), hook=SimpleNamespace(pytest_deselected=lambda items: None)
    )
    conftest.pytest_collection_modifyitems(config, items)
    return [item.name for item in items]


MARKS: Dict[str, List[str]] = {"plain": [], "many": ["nightly"], "starts": ["not_fast"]}


def test_each_test_is_of_make_test_or_of_make_nightly() -> None:
    assert selected(MARKS) == ["plain", "starts"]
    assert selected(MARKS, nightly=True) == ["many"]
    assert selected(MARKS, fast=True) == ["plain"]


def test_the_values_that_are_left_out_are_marked() -> None:
    values = few([(1, "a"), (2, "b")], [(2, "b")])
    assert values[1] == (2, "b") and values[0].values == (1, "a")
    assert [mark.name for mark in values[0].marks] == ["nightly"]
    assert few(range(2), [0])[1].values == (1,)


@pytest.mark.parametrize("always", [[], [3]])
def test_a_claim_without_a_value_for_make_test_is_refused(always: List[int]) -> None:
    with pytest.raises(AssertionError, match="for make test"):
        few(range(3), always)
