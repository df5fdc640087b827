"""A value has a shape, or is told apart by the first place that differs."""

from typing import Any

import pytest

from launch.hosts.answer_shapes import Shape, fault


@pytest.mark.parametrize(
    ("value", "shape"),
    [
        ("a", str), (None, None), (3, (str, int)), ([], [str]), (["a"], [str]), ({"a": 1, "b": []}, {"a": int}),
        ({}, {"a?": int}), ({"x": 1, "y": 2}, {str: int}), ({"n": None}, {"n": (int, None)}), ({"a": [[1]]}, object),
    ],
)  # fmt: skip
def test_what_has_the_shape_has_no_fault(value: Any, shape: Shape) -> None:
    assert fault(value, shape) is None


@pytest.mark.parametrize(
    ("value", "shape", "at"),
    [
        (1, str, ""), ("null", None, ""), ([], {"a": int}, ""), ({}, {"a": int}, ".a"), ({"a": "1"}, {"a": int}, ".a"),
        ({"a?": 1}, {"a": int}, ".a"), ({"a": None}, {"a?": int}, ".a"), ({"a": [1, "b"]}, {"a": [int]}, ".a[]"),
        ({"a": [{}]}, {"a": [{"b": int}]}, ".a[].b"), ({"x": 1, "y": "2"}, {str: int}, ".*"),
        ({"a": {"b": 1}}, (None, {"a": {"b": str}}), ".a.b"),
    ],
)  # fmt: skip
def test_what_has_another_shape_is_named_with_the_place(value: Any, shape: Shape, at: str) -> None:
    assert fault(value, shape) == at
