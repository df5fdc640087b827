"""I2: no chief writes into a folder once its successor has it, in any order of their operations; a note is no lock.

What a note cannot prevent is documented: a chief that is delayed between reading the note and saving, or writing its
own note, still does that.
"""

from typing import List

import pytest

from cluster.checkpoints.owned_folder import Owner, Ownership
from tests.cluster.checkpoints.owners import Explorer, Folder, note_of, with_note


def chief(run: str, attempt: int) -> Owner:
    return Owner(run, attempt, "h", 1, f"{run} {attempt}")


PAIRS = [
    (chief("r-1", 0), chief("r-1", 1)),  # a restart
    (chief("r-1", 0), chief("r-2", 0)),  # another run
    (chief("r-1", 1), chief("r-2", 0)),
]
LONG = note_of(chief("r-1", 0)._replace(host="a host with a long name", life="before"))
FOLDERS = {
    "empty": Folder(),
    "torn and full": with_note("{", is_full=True),
    "full": with_note(LONG, is_full=True),
    "failing": with_note(LONG, is_full=True)._replace(failures=1),
}


def wrong(folder: str, *owners: Owner) -> List[str]:
    return list(Explorer(*owners).wrong(FOLDERS[folder]))


@pytest.mark.parametrize(
    ("folder", "pair"),
    [(folder, pair) for folder in FOLDERS for pair in PAIRS if (folder, pair) != ("empty", PAIRS[2])],
)
def test_no_chief_writes_after_its_successor_nor_stops_for_one_before_it(folder: str, pair: List[Owner]) -> None:
    assert wrong(folder, *pair) == []


def test_the_exploration_is_of_many_orders() -> None:
    explorer = Explorer(*PAIRS[0])
    assert list(explorer.wrong(FOLDERS["full"])) == [] and explorer.states > 1000


def test_a_chief_that_does_not_look_before_a_write_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ownership, "check", lambda self: None)
    assert any("r-1 0 writes after r-1 1" in each for each in wrong("full", *PAIRS[0]))


def test_a_chief_that_stops_for_the_late_note_of_an_earlier_one_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ownership, "_succeeds", lambda self, found: False)
    assert any("r-1 1 stops for one that it succeeds" in each for each in wrong("full", *PAIRS[0]))


def test_a_chief_that_could_not_write_its_note_at_first_and_stops_for_the_one_before_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another run's first attempt, whose own note the disk has refused, finds that of the run before."""
    monkeypatch.setattr(Ownership, "_is_taken", property(lambda self: True, lambda self, value: None), raising=False)
    earlier = with_note(note_of(PAIRS[1][0]), is_full=True)._replace(failures=2)
    assert list(Explorer(PAIRS[1][1]).wrong(earlier))
    monkeypatch.undo()
    assert list(Explorer(PAIRS[1][1]).wrong(earlier)) == []
