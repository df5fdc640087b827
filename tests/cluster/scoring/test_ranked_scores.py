"""Areas under the ROC curve: exact while there are few scores, and then no further off than they say."""

import math
import tracemalloc
from typing import Any, Dict, List

import numpy as np
import pytest

from cluster.scoring import ranked_scores
from cluster.scoring.ranked_scores import Area, RankedScores

ALL = np.ones(50, bool)


def by_pairs(label: np.ndarray, score: np.ndarray, weight: np.ndarray) -> float:
    """Every positive example against every negative one."""
    differences = np.subtract.outer(score[label == 1], score[label == 0])
    weights = np.outer(weight[label == 1], weight[label == 0])
    return float(((differences > 0) + 0.5 * (differences == 0)).ravel() @ weights.ravel() / weights.sum())


def area_of(parts: Dict[str, Any], slices: Any = None, which: Any = ALL) -> Area:
    return ranked(parts, slices).area(which)


def ranked(parts: Dict[str, Any], slices: Any = None, batch: int = 64) -> RankedScores:
    parts = {part: np.asarray(values) for part, values in parts.items()}
    scores, number = RankedScores("group" in parts), len(parts["score"])
    slices = np.zeros(number, np.int32) if slices is None else slices
    for begin in range(0, number, batch):
        some = slice(begin, begin + batch)
        scores.add(slices[some], {part: values[some] for part, values in parts.items()})
    return scores


def test_right_order_is_1_wrong_order_is_0_and_no_order_is_a_half() -> None:
    label = [0, 0, 1, 1]
    found = [area_of({"label": label, "score": score}).value for score in ([1, 2, 3, 4], [4, 3, 2, 1], [0] * 4)]
    assert found == [1, 0, 0.5]


def test_where_there_is_nothing_to_rank_it_is_no_number() -> None:
    nothing: List[Any] = []
    for label, score in ((np.ones(3), np.arange(3)), ([0, 1], [np.nan, 1]), (nothing, nothing)):
        assert math.isnan(area_of({"label": label, "score": score}).value)


def test_a_score_that_is_no_number_spoils_its_own_slice_and_the_whole() -> None:
    parts = {"label": [0, 1, 0, 1], "score": [np.nan, 1.0, 0.5, 0.7]}
    areas = [area_of(parts, np.array([0, 0, 1, 1]), np.array(which)) for which in ([1, 0], [0, 1], [1, 1])]
    assert [area.value for area in areas] == pytest.approx([math.nan, 1.0, math.nan], nan_ok=True)


@pytest.mark.parametrize("seed", range(40))
def test_with_few_rows_the_exact_area_of_each_slice_is_within_the_stated_error(seed: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(ranked_scores, "MOST_ROWS", 200)
    random = np.random.RandomState(seed)
    number, slices = 3000, int(random.choice([1, 2, 5]))
    label = random.randint(0, 2, number)
    score = random.rand(number) + random.choice([0.0, 0.3]) * label
    score = np.where(random.rand(number) < random.choice([0.0, 0.4]), 0.5, score)  # a score of much weight
    score = score[np.argsort(score)] if seed % 4 == 0 else score  # in order, the score of much weight is in a range
    weight, of = random.randint(0, 3, number) / 2, random.randint(0, slices, number).astype(np.int32)
    scores = ranked({"label": label, "score": score, "weight": weight}, of)
    for which in [*np.eye(50, dtype=bool)[:slices], ALL]:
        area, mask = scores.area(which), which[of]
        exact = by_pairs(label[mask], score[mask], weight[mask])
        assert abs(area.value - exact) <= area.error + 1e-12
        assert 0 < area.error < (0.2 if seed % 4 == 0 else 0.02 * slices)
    assert scores._rows.number <= 200


def test_the_error_counts_every_order_within_a_range(monkeypatch: Any) -> None:
    monkeypatch.setattr(ranked_scores, "MOST_ROWS", 1)
    score = np.random.RandomState(0).rand(100)
    assert area_of({"label": score > 0.5, "score": score}) == pytest.approx((0.5, 0.5))  # the exact one is 1


def test_a_score_within_a_range_belongs_to_it(monkeypatch: Any) -> None:
    monkeypatch.setattr(ranked_scores, "MOST_ROWS", 20)
    label, score = np.arange(400) % 2, np.arange(400.0)
    scores = ranked({"label": label, "score": score})
    scores.area(ALL)
    low = scores._rows.low + 0.5
    scores.add(np.zeros(len(low), np.int32), {"label": np.ones(len(low)), "score": low})
    label, score = np.concatenate([label, np.ones(len(low))]), np.concatenate([score, low])
    area = scores.area(ALL)
    assert abs(area.value - by_pairs(label, score, np.ones(len(score)))) <= area.error < 0.1


def test_ties_stay_exact_among_more_scores_than_there_are_rows(monkeypatch: Any) -> None:
    monkeypatch.setattr(ranked_scores, "MOST_ROWS", 100)
    random = np.random.RandomState(0)
    label, score = random.randint(0, 2, 4000), np.where(random.rand(4000) < 0.9, 0.5, random.rand(4000))
    area = area_of({"label": label, "score": score})
    assert (
        abs(area.value - by_pairs(label, score, np.ones(4000))) <= area.error < 0.001
    )  # the tie alone is 0.4 of pairs


@pytest.mark.parametrize("groups", [3, 40])
def test_few_groups_have_ranges_and_many_are_drawn_whole(groups: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(ranked_scores, "MOST_OF_GROUPS", 600)
    monkeypatch.setattr(ranked_scores, "FEW_GROUPS", 3)
    random = np.random.RandomState(1)
    label, score, group = random.randint(0, 2, 4000), random.rand(4000), random.randint(0, groups, 4000) - 2
    found = ranked({"label": label, "score": score, "group": group})
    area, exact = found.area(ALL), {}
    for each in set(group.tolist()):
        of = group == each
        exact[each] = by_pairs(label[of], score[of], np.ones(of.sum())), of.sum()
    if groups == 3:
        assert found.level == 0 and 0 < area.error < 0.02
    else:
        assert found.level > 0 and area.error == 0
        exact = {each: exact[each] for each in set(found._rows.group.tolist())}
        assert 0 < len(exact) < 20
    assert (
        abs(area.value - sum(a * n for a, n in exact.values()) / sum(n for _, n in exact.values()))
        <= area.error + 1e-12
    )


def test_groups_are_drawn_about_evenly(monkeypatch: Any) -> None:
    monkeypatch.setattr(ranked_scores, "MOST_OF_GROUPS", 10_000)
    for group in (np.arange(80_000), np.arange(80_000) * 4096, -np.arange(80_000)):
        found = ranked({"label": group % 2, "score": group / 7.0, "group": group}, batch=4000)
        found.area(ALL)
        kept = len(set(found._rows.group.tolist()))
        assert found.level == 3 or found.level == 4
        assert kept == pytest.approx(80_000 / 2**found.level, rel=0.1)


@pytest.mark.parametrize(("grouped", "most_mb"), [(False, 220), (True, 700)])
def test_any_number_of_examples_takes_the_memory_that_the_page_names(
    grouped: bool, most_mb: float, monkeypatch: Any
) -> None:
    rows = 1 << 14
    full = ranked_scores.MOST_OF_GROUPS if grouped else ranked_scores.MOST_ROWS
    for name in ("MOST_ROWS", "MOST_OF_GROUPS"):
        monkeypatch.setattr(ranked_scores, name, rows)
    random, scores = np.random.RandomState(0), RankedScores(grouped)
    tracemalloc.start()
    try:
        for _ in range(64):
            label, score = random.randint(0, 2, 2048), random.rand(2048)
            group = {"group": random.randint(0, 1 << 20, 2048)} if grouped else {}
            scores.add(random.randint(0, 20, 2048).astype(np.int32), {"label": label, "score": score, **group})
        scores.area(ALL)
        assert tracemalloc.get_traced_memory()[1] / rows < most_mb * 1e6 / full
    finally:
        tracemalloc.stop()
