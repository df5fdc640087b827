"""Every measure is what its definition says, written out over pairs and examples."""

import math
from typing import Any, Dict, List, Optional

import numpy as np
import pytest

from cluster.scoring import ranked_scores
from cluster.scoring.measures import BadExamples, MeasuredMetric

SEEDS = range(30)


def drawn(seed: int) -> Dict[str, np.ndarray]:
    """Examples with ties among scores, groups of one kind, and weights of 0."""
    random = np.random.RandomState(seed)
    n = random.randint(2, 60)
    return {
        "label": random.randint(0, 2, n).astype(np.float32),
        "score": random.randint(1, random.randint(3, 40), n).astype(np.float32) / 41,
        "weight": random.randint(0, 4, n).astype(np.float32) / 2,
        "group": random.randint(-3, 3, n),
    }


@pytest.fixture(autouse=True, params=[1, 7, 100])
def at_once(request: Any, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many examples come together. The table of scores takes them in as they come; here it is large."""
    monkeypatch.setattr(ranked_scores.RankedScores, "add", _joining(ranked_scores.RankedScores.add))
    return int(request.param)


def _joining(add: Any) -> Any:
    def joined(self: Any, *of: Any) -> None:
        add(self, *of)
        self._join()

    return joined


@pytest.fixture
def measure(at_once: int) -> Any:
    def found(kind: str, parts: Dict[str, np.ndarray]) -> float:
        measured = MeasuredMetric(kind)
        for begin in range(0, max(map(len, parts.values())), at_once):
            measured.add({part: values[begin : begin + at_once] for part, values in parts.items()})
        areas = measured.areas()
        assert measured.note(areas) == ""
        return areas[""].value

    return found


def area_by_pairs(label: Any, score: Any, weight: Any) -> Optional[float]:
    """Every positive example against every negative one, with the product of their weights; None without any."""
    won = total = 0.0
    for i in np.flatnonzero(label > 0.5):
        for j in np.flatnonzero(label <= 0.5):
            pair = float(weight[i]) * float(weight[j])
            total += pair
            won += pair * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
    return won / total if total else None


def grouped_by_pairs(label: Any, score: Any, group: Any, weight: Any) -> Optional[float]:
    areas: List[float] = []
    weights: List[float] = []
    for each in sorted(set(group.tolist())):
        of = group == each
        area = area_by_pairs(label[of], score[of], weight[of])
        if area is not None:
            areas.append(area)
            weights.append(float(weight[of].sum()))
    return sum(a * w for a, w in zip(areas, weights)) / sum(weights) if weights else None


def same(found: float, expected: Optional[float]) -> bool:
    return math.isnan(found) if expected is None else found == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_area_is_the_share_of_pairs_in_the_right_order_by_weight(seed: int, measure: Any) -> None:
    examples = drawn(seed)
    del examples["group"]
    assert same(measure("auc", examples), area_by_pairs(**examples))
    del examples["weight"]
    assert same(measure("auc", examples), area_by_pairs(**examples, weight=np.ones(len(examples["label"]))))


@pytest.mark.parametrize("seed", SEEDS)
def test_the_grouped_area_is_the_mean_over_groups_of_both_kinds_by_their_examples(seed: int, measure: Any) -> None:
    examples = drawn(seed)
    assert same(measure("grouped_auc", examples), grouped_by_pairs(**examples))
    del examples["weight"]
    ones = np.ones(len(examples["label"]))
    assert same(measure("grouped_auc", examples), grouped_by_pairs(**examples, weight=ones))


def test_a_monotone_change_of_one_groups_scores_changes_the_area_and_not_the_grouped_one(measure: Any) -> None:
    label, group = np.array([0, 1, 0, 1.0]), np.array([1, 1, 2, 2])
    score = np.array([0.1, 0.2, 0.3, 0.4])
    moved = np.where(group == 2, score - 0.25, score)
    for each in (score, moved):
        assert measure("grouped_auc", {"label": label, "score": each, "group": group}) == 1
    assert [measure("auc", {"label": label, "score": each}) for each in (score, moved)] == [0.75, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_logloss_calibration_and_mean_are_sums_over_examples(seed: int, measure: Any) -> None:
    examples = drawn(seed)
    del examples["group"]
    label, score, weight = (examples[part].astype(float).tolist() for part in ("label", "score", "weight"))
    total = sum(weight)
    entropy = sum(w * -math.log(p if y else 1 - p) for y, p, w in zip(label, score, weight))
    predicted, observed = (sum(w * v for v, w in zip(values, weight)) for values in (score, label))
    assert same(measure("logloss", examples), entropy / total if total else None)
    assert same(measure("calibration", examples), predicted / observed if observed else None)
    value = {"value": examples["score"], "weight": examples["weight"]}
    assert same(measure("mean", value), predicted / total if total else None)


def test_a_certain_mistake_costs_as_much_as_float32_knows_of_a_probability(measure: Any) -> None:
    wrong = {"label": np.array([1.0, 0.0]), "score": np.array([0.0, 1.0], np.float32)}
    assert measure("logloss", wrong) == pytest.approx(-math.log(1e-7))


@pytest.mark.parametrize("kind", ["auc", "logloss", "calibration"])
def test_a_score_that_is_no_number_makes_the_value_undefined(kind: str, measure: Any) -> None:
    examples = {"label": np.array([0.0, 1.0]), "score": np.array([np.nan, 0.5])}
    assert math.isnan(measure(kind, examples))


@pytest.mark.parametrize(
    "parts, message",
    [
        ({"score": np.array([0.5, 1.5])}, "expected scores from 0 to 1, found 1.5; pass probabilities, not logits"),
        ({"label": np.array([0.0, -1.0])}, "expected labels from 0 to 1, found -1"),
        ({"weight": np.array([1.0, -0.5])}, "expected weights of at least 0, found -0.5"),
        ({"weight": np.array([1.0, np.nan])}, "expected weights of at least 0, found nan"),
        ({"score": np.array([0.5])}, "expected the same number of values of each part, found 2 of label, 1 of score"),
    ],
)
def test_examples_without_a_meaning_are_refused(parts: Dict[str, Any], message: str) -> None:
    with pytest.raises(BadExamples, match=message):
        MeasuredMetric("logloss").add({"label": np.array([0.0, 1.0]), "score": np.array([0.5, 0.5]), **parts})
