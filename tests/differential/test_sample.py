"""A sample of `make differential`, on this process's runtime, as threads of this process.

A part of the models, all pairs of a way's values, and some generated models. `make test` takes every second of them.
"""

import itertools
from typing import Any, List, Set

import pytest

from tests.differential.authors import every
from tests.differential.carrying_out import RUNTIME
from tests.differential.generated import cases
from tests.differential.sampled import differences
from tests.differential.ways import Case, product, sample
from tests.support.nightly import few

NUMBER = 14  # models, which is enough for all pairs
SEEDS = 2  # of generated models


def chosen() -> List[Case]:
    """Every so many-th model, each in one way."""
    authors = list(every().values())
    return sample(product(authors[:: len(authors) // NUMBER], [RUNTIME]))


def test_the_sample_has_all_pairs_of_values() -> None:
    def pairs(cases: List[Case]) -> Set[Any]:
        return {
            pair for way in {case.way for case in cases} for pair in itertools.combinations(way.values().items(), 2)
        }

    assert pairs(chosen()) == pairs(product(list(every().values()), [RUNTIME]))


@pytest.mark.timeout(900)  # on a machine that others use
@pytest.mark.parametrize("half", few([0, 1], [0]))
def test_a_sample_of_models_trains_as_in_one_process(half: int) -> None:
    assert not differences([*chosen(), *cases(range(SEEDS), {"runtime": [RUNTIME]})][half::2])
