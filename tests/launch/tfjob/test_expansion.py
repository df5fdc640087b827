"""``$(NAME)`` is expanded as Kubernetes does it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from launch.tfjob.replica_container import escaped, expanded, references


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("--steps=$(STEPS)", "--steps=50"),
        ("$(STEPS)$(STEPS)", "5050"),
        ("$$(STEPS)", "$(STEPS)"),
        ("$$$(STEPS)", "$50"),
        ("$(date)", "$(date)"),
        ("${STEPS} $STEPS $", "${STEPS} $STEPS $"),
        ("$(STEPS", "$(STEPS"),
    ],
)
def test_a_text_is_expanded(text: str, result: str) -> None:
    assert expanded(text, {"STEPS": "50"}) == result


def test_references_are_those_that_are_not_escaped() -> None:
    assert references("$(A) $$(B) ${C} $(D)") == ["A", "D"]


@given(st.text(alphabet="$()A{ ", max_size=12))
def test_an_escaped_text_is_expanded_to_itself(text: str) -> None:
    assert expanded(escaped(text), {"A": "x", "": "y", "A ": "z"}) == text
