"""What travels together comes apart as it was."""

from typing import Any, Dict, Tuple

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.variables.layout import Bucket
from cluster.variables.local_copies import LocalCopies

SHAPES: Dict[str, Tuple[int, ...]] = {"bias": (10,), "aligned": (4, 8), "scalar": (), "odd": (5, 7)}
VALUES = {name: np.random.RandomState(1).normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}


def packed_and_unpacked(*names: str) -> Tuple[Any, Dict[str, Any]]:
    bucket = Bucket(0, 0, names)
    with tf.Graph().as_default(), tf.Session() as session:
        copies = LocalCopies([], SHAPES, "/cpu:0")
        packed = copies.pack(bucket, {name: tf.constant(VALUES[name]) for name in names})
        found: Tuple[Any, Dict[str, Any]] = session.run((packed, copies.unpack(bucket, packed)))
        return found


@pytest.mark.parametrize("names", [tuple(SHAPES), ("aligned", "bias"), ("scalar", "scalar")])
def test_variables_that_travel_together_come_apart_as_they_were(names: Tuple[str, ...]) -> None:
    _, found = packed_and_unpacked(*names)
    assert set(found) == set(names)
    for name in found:
        np.testing.assert_array_equal(found[name], VALUES[name])


def test_each_begins_a_row_and_zeros_fill_its_last() -> None:
    packed, _ = packed_and_unpacked("bias", "odd", "aligned")
    assert packed.shape == (1 + 3 + 2, 16)
    np.testing.assert_array_equal(packed[0], [*VALUES["bias"], *np.zeros(6)])
    np.testing.assert_array_equal(packed[4:].reshape(4, 8), VALUES["aligned"])


def test_one_that_travels_alone_keeps_its_shape() -> None:
    packed, found = packed_and_unpacked("odd")
    assert packed.shape == found["odd"].shape == (5, 7)
