"""The jobs that are shipped learn what they say."""

from pathlib import Path

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.variables.layout import ITEM_BYTES
from jobs import digits
from tests.support.nightly import few
from tests.support.training.processes import Cluster


@pytest.mark.nightly
def test_polynomial_finds_the_weights_5_0_3(tmp_path: Path) -> None:
    with Cluster(tmp_path, "polynomial") as cluster:
        cluster.start_all({"steps": 3000, "batch_size": 50, "towers": 2})
        outcome = cluster.finish()
    w = tf.train.load_checkpoint(outcome.checkpoint).get_tensor("w")
    np.testing.assert_allclose(w.ravel(), [5, 0, 3], atol=0.05)
    assert outcome.metrics["loss"] < 0.1


@pytest.mark.parametrize("wire", few(ITEM_BYTES, ["float32"]))
def test_digits_reads_at_least_95_percent_of_held_out_digits_in_whatever_numbers_it_sends(
    tmp_path: Path, wire: str
) -> None:
    with Cluster(tmp_path, "digits") as cluster:
        cluster.start_all({"steps": 300, "batch_size": 32, "towers": 2, "wire": wire}, {"seed": 0})
        assert cluster.finish().metrics["accuracy"] >= 0.95


def test_digits_holds_out_every_fifth_example_and_trains_on_none_of_them() -> None:
    trained, held_out = digits.examples(held_out=False), digits.examples(held_out=True)
    assert (len(trained["y"]), len(held_out["y"])) == (1438, 359)
    assert set(held_out["y"]) == set(range(10))
    seen = {image.tobytes() for image in trained["x"]}
    assert not seen & {image.tobytes() for image in held_out["x"]}
