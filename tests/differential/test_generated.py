"""A seed is always the same model and way, in any process; some of them are trained."""

from pathlib import Path

import pytest

from tests.differential.carrying_out import RUNTIME
from tests.differential.generated import cases, drawn
from tests.differential.recipes import from_json
from tests.differential.sampled import differences


def test_a_seed_is_one_model_and_another_seed_another() -> None:
    assert drawn(7) == drawn(7)
    assert len({drawn(number)[0].as_json() for number in range(20)}) > 15


@pytest.mark.parametrize("number", range(10))
def test_a_recipe_is_the_same_after_json(number: int) -> None:
    recipe, _ = drawn(number)
    assert from_json(recipe.as_json()) == recipe


@pytest.mark.timeout(900)  # on a machine that others use
def test_some_generated_models_train_as_in_one_process(tmp_path: Path) -> None:
    assert not differences(cases(range(4), {"runtime": [RUNTIME]}), tmp_path)
