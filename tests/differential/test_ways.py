"""The chosen cases have every pair of values; every case can be divided among its towers."""

import itertools
from typing import Any, List, Sequence, Set

import pytest

from tests.differential.authors import RUNTIMES, every
from tests.differential.ways import AXES, GLOBAL_BATCH, SAME, Case, pairwise, product, sample

ALL = product(list(every().values()), RUNTIMES)


def pairs(cases: Sequence[Case]) -> Set[Any]:
    return {pair for way in {case.way for case in cases} for pair in itertools.combinations(way.values().items(), 2)}


def test_there_are_many_models_and_all_ways_of_each() -> None:
    assert len(every()) >= 60
    ways = 1
    for values in AXES.values():
        ways *= len(values)
    assert sum(case.author.name == "no_decay" for case in ALL) == ways


@pytest.mark.parametrize("runtimes", [RUNTIMES, ("tf1",), ("tf2",)])
def test_a_sample_has_every_model_and_all_pairs_of_values(runtimes: Sequence[str]) -> None:
    cases = product(list(every().values()), runtimes)
    chosen = sample(cases)
    assert pairs(chosen) == pairs(cases)
    assert sorted(case.author.name for case in chosen) == sorted({case.author.name for case in cases})


def test_pairwise_has_every_model_with_every_value() -> None:
    def met(cases: Sequence[Case]) -> Set[Any]:
        return {(case.author.name, value) for case in cases for value in case.way.values().items()}

    chosen = pairwise(ALL)
    assert met(chosen) == met(ALL) and pairs(chosen) == pairs(ALL)
    assert len(chosen) < len(ALL) / 20


def test_all_towers_together_have_the_examples_of_one_process() -> None:
    for case in ALL:
        towers: List[int] = [case.per_tower] * (case.workers * case.way.towers)
        assert sum(towers) == GLOBAL_BATCH or set(towers) == {SAME}
