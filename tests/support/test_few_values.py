"""Of each test one value is left, the first."""

from typing import NamedTuple

from tests.support.few_values import others


class Item(NamedTuple):
    """A test with one of its values."""

    nodeid: str


def test_the_first_value_of_each_test_stays() -> None:
    ids = ["a.py::test_a[1]", "a.py::test_b", "a.py::test_a[2]", "b.py::test_a[2-[x]]", "b.py::test_a[3]"]
    left_out = others([Item(each) for each in ids])
    assert sorted(each.nodeid for each in left_out) == ["a.py::test_a[2]", "b.py::test_a[3]"]
