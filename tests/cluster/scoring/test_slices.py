"""SliceNumbers have names and examples of their own, and those beyond a bound are measured together."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from cluster.scoring import examples
from cluster.scoring.examples import SliceNumbers, slice_name
from cluster.scoring.measures import MeasuredMetric


def largest(values: Any, most: int, batch: int = 7) -> Any:
    """Return the name of each of the largest slices, and whether each value is of it."""
    found, array = SliceNumbers(), np.asarray(values)
    parts = [found.numbers_of(array[begin : begin + batch]) for begin in range(0, len(array), batch)]
    numbers = np.concatenate(parts)
    return [(each.name, each.numbers[numbers]) for each in found.largest(most)]


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_have_results_of_their_own_and_all_others_one_together(seed: int) -> None:
    random = np.random.RandomState(seed)
    values = random.zipf(1.5, 200).clip(max=40).tolist()
    most = int(random.randint(1, 30))
    found = largest(values, most)
    counts = Counter(values).most_common(most)  # of as many examples, the one that came first is first
    own = [(str(value), number) for value, number in counts]
    rest = len(values) - sum(number for _, number in counts)
    assert [(name, int(mask.sum())) for name, mask in found] == own + [("others", rest)] * bool(rest)
    assert (np.sum([mask for _, mask in found], axis=0) == 1).all()


def test_values_beyond_those_that_are_told_apart_are_among_the_others(monkeypatch: Any) -> None:
    monkeypatch.setattr(examples, "MOST_SLICED", 2)
    found = largest(["a", "b", "c", "c", "c", "a"], 5, batch=2)
    assert [(name, int(mask.sum())) for name, mask in found] == [("a", 2), ("b", 1), ("others", 3)]


def test_a_name_is_printable_and_short_and_belongs_to_one_slice() -> None:
    values: Any = ["FR", "", "others", "a\nb", "a\tb", "x" * 100, "x" * 101, 7, True, "é", b"\xff", b"\xfe"]
    names = [slice_name(value) for value in values]
    assert (names[0], names[7], names[8], names[9]) == ("FR", "7", "True", "é")
    assert len(set(names)) == len(values)
    assert all(name.isprintable() and 0 < len(name) <= 40 and name != "others" for name in names)


def test_a_metric_by_slices_is_that_of_each_slices_examples() -> None:
    random = np.random.RandomState(0)
    label, score = random.randint(0, 2, 90).astype(float), random.rand(90)
    country = random.choice([b"FR", b"DE", b"IT"], 90).astype(object)
    measured = MeasuredMetric("calibration", most=20)
    for some in (slice(0, 50), slice(50, 90)):
        measured.add({"label": label[some], "score": score[some], "slice": country[some]})
    expected = {name: score[of].sum() / label[of].sum() for name, of in parts(country)}
    assert {name: area.value for name, area in measured.areas().items()} == pytest.approx(
        {"": score.sum() / label.sum(), **expected}
    )


def parts(country: np.ndarray) -> Any:
    return [(name.decode(), country == name) for name in set(country)]
