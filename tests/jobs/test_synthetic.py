"""synthetic has the variables of the models that it names, all of which a step reads and changes."""

from pathlib import Path
from typing import Any, Dict, Tuple

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from jobs import synthetic
from tests.support.training.alone import saved, train_alone


def built(args: Dict[str, Any]) -> Tuple[int, int]:
    """How many values and how many variables a model has."""
    with tf.Graph().as_default():
        synthetic.model(tf.placeholder(tf.int32, [4, 26]), args)
        sizes = [variable.shape.num_elements() for variable in tf.trainable_variables()]
        return sum(sizes), len(sizes)


@pytest.mark.parametrize(
    ("model", "values", "variables"),
    [
        ("vgg16", 138_357_544, 32),
        ("resnet50", 25_557_032, 161),
        ("bert_base", 109_482_240, 199),
        ("embedding", 160_000_000, 1),
    ],
)
def test_a_model_has_the_published_number_of_values(model: str, values: int, variables: int) -> None:
    assert built({"model": model}) == (values, variables)


def test_every_variable_of_a_model_changes_in_a_step_and_by_a_full_gradient(tmp_path: Path) -> None:
    outcome = train_alone(synthetic, tmp_path, {"model": "resnet50"}, steps=2, batch_size=2)
    assert outcome.succeeded, outcome
    values = saved(outcome)
    values.pop("global_step")
    assert len(values) == 161 and all(np.all(value != 0) for value in values.values())


def test_the_embedding_changes_only_rows_that_were_looked_up(tmp_path: Path) -> None:
    args = {"model": "embedding", "rows": 10000, "lookups": 3}
    outcome = train_alone(synthetic, tmp_path, args, steps=2, batch_size=4)
    assert outcome.succeeded, outcome
    changed = np.any(saved(outcome)["table"] != 0, axis=1).sum()
    assert 0 < changed <= 2 * 3 * 4


def test_an_unknown_model_is_told_with_those_there_are() -> None:
    with pytest.raises(JobError, match=r"args.model: expected one of embedding, vgg16, resnet50, bert_base, found 'vg"):
        built({"model": "vgg"})
