"""A seed is always the same model and way, in any process; test_sample.py trains some of them."""

import pytest

from tests.differential.generated import drawn
from tests.differential.recipes import from_json


def test_a_seed_is_one_model_and_another_seed_another() -> None:
    assert drawn(7) == drawn(7)
    assert len({drawn(number)[0].as_json() for number in range(20)}) > 15


@pytest.mark.parametrize("number", range(10))
def test_a_recipe_is_the_same_after_json(number: int) -> None:
    recipe, _ = drawn(number)
    assert from_json(recipe.as_json()) == recipe
