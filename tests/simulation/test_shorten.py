"""A failure becomes a test: fewer faults, rounder times, shorter durations, and the text of it."""

import re
from pathlib import Path
from typing import List, Tuple

import pytest

from tests.simulation import shorten
from tests.simulation.faults import Fault
from tests.simulation.verdict import failure, promise
from tests.simulation.world import World

WITH_SLEEP = 2498  # an elastic run of four hosts, of which one is suspended
FAULTS_OF_ONE = [Fault(20.2, "clock", "h1", 5.0), Fault(44.4, "sleep", "h2", 35.6)]


def test_a_broken_promise_is_found_and_made_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that does not count its suspension has a process beside the next formation, by one fault."""
    monkeypatch.setattr(World, "since_boot", lambda self: self._here().time())
    why = failure(World(WITH_SLEEP, FAULTS_OF_ONE))
    assert why is not None and why.startswith("I1: 2 formations: ps:0 attempt 1 on h1, ")
    (fault,) = shorten.Shortening(WITH_SLEEP, why, tries=4).shortest(FAULTS_OF_ONE)
    assert fault.kind == "sleep" and fault.at % 10 == 0
    found: List[Fault] = []
    exec(_given_faults(shorten.as_test(WITH_SLEEP, why, [fault])), {"Fault": Fault, "List": List, "found": found})
    assert promise(failure(World(WITH_SLEEP, found))) == "I1"


def _given_faults(test: str) -> str:
    """The body of a test but for its last line; its faults are appended to ``found``."""
    made = "\n".join(line[4:] for line in test.splitlines()[1:-1])
    return f"{made}\nfound.extend(faults)\n"


FAULTS = [Fault(17.3 * index, kind, "h1", 33.3) for index, kind in enumerate(["cut", "slow", "power", "agent", "cut"])]


@pytest.mark.parametrize(
    "needed, least_s, shortest",
    [
        ((), 0.0, []),
        ((2,), 0.0, [(30.0, 0.0)]),
        ((0, 4), 2.0, [(0.0, 3.0), (70.0, 3.0)]),
        ((1,), 33.0, [(20.0, 33.0)]),
    ],
)
def test_what_a_failure_needs_stays(
    needed: Tuple[int, ...], least_s: float, shortest: List[Tuple[float, float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = [FAULTS[index].kind for index in needed]

    def needs(world: World) -> str:
        kept = [each for each in world.faults if each.seconds >= least_s]
        return "I1: x" if all(kinds.count(kind) <= [each.kind for each in kept].count(kind) for kind in kinds) else "I7"

    monkeypatch.setattr(shorten, "verdict", needs)
    found = shorten.Shortening(3, "I1: y").shortest(FAULTS)
    assert [(each.at, each.seconds) for each in found] == shortest


def test_a_failure_is_as_short_as_the_tries_have_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shorten, "verdict", lambda world: "I1: x")
    assert shorten.Shortening(3, "I1: x", tries=1).shortest(FAULTS) == FAULTS[:2]


def test_a_test_is_written_once_to_a_file_of_its_own(tmp_path: Path) -> None:
    path = tmp_path / "test_found.py"
    test = shorten.as_test(5, "I0: h1: a task: KeyError('h2')", FAULTS[:1])
    assert shorten.write(test, path) and not shorten.write(test, path)
    assert shorten.write(shorten.as_test(6, "I7: no end", []), path)
    text = path.read_text()
    assert re.findall(r"def (.*)\(", text) == ["test_i0_keyerror_of_seed_5", "test_i7_of_seed_6"]
    compile(text, "test_found.py", "exec")
