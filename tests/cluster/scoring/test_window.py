"""A worker's newest examples travel as bytes, whatever their types."""

from typing import Any

import numpy as np
import pytest

from cluster.scoring.examples import pack, share_of, together, unpack


def drawn(random: Any, number: int) -> Any:
    texts = np.empty(number, object)
    texts[:] = [bytes(random.randint(0, 256, random.randint(0, 9)).astype(np.uint8)) for _ in range(number)]
    numbers = [random.rand(number).astype(kind) for kind in (np.float32, np.float64, np.int64, np.bool_)]
    return [*numbers, texts]


@pytest.mark.parametrize("seed", range(10))
def test_what_was_packed_is_unpacked_equal_in_values_and_types(seed: int) -> None:
    random = np.random.RandomState(seed)
    workers = [drawn(random, random.randint(0, 50)) for _ in range(3)]
    merged = together([unpack(pack(columns)) for columns in workers])
    for found, expected in zip(merged, zip(*workers)):
        assert found.dtype == expected[0].dtype
        assert found.tolist() == np.concatenate(expected).tolist()


def test_workers_share_the_bound_and_none_is_left_without_examples() -> None:
    assert (share_of(1), share_of(4), share_of(10_000)) == (65_536, 16_384, 64)
