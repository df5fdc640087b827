"""From a failure to a test: the fewest and roundest faults that still break the same promise."""

import json
from pathlib import Path
from typing import Any, List, Sequence

from tests.simulation.faults import Fault
from tests.simulation.verdict import promise, verdict
from tests.simulation.world import World

TRIES = 200  # histories to shorten one
FOUND = Path(__file__).with_name("test_found.py")
_STEPS = (10.0, 1.0, 0.1)  # seconds, the coarsest first
_SHORT = (0.0, 0.5, 1.0, 3.0, 10.0, 30.0)
_HEAD = '''"""Histories that broke a promise once, each as short as it still did (``shorten``)."""

from typing import List

from tests.simulation.faults import Fault
from tests.simulation.verdict import failure
from tests.simulation.world import World
'''


class Shortening:
    """Tries histories with other faults in the place of a seed's.

    Args:
      tries: how many at most; what is found by then is the shortest.
    """

    def __init__(self, seed: int, why: str, tries: int = TRIES):
        self._seed, self._promise, self._tries = seed, promise(why), tries

    def shortest(self, faults: Sequence[Fault]) -> List[Fault]:
        """These faults, with fewer of them, rounder times and shorter durations."""
        found = self._single(self._halved(list(faults)))
        for index in range(len(found)):
            found = self._first(found, index, "at", _rounded(found[index].at))
            longest = found[index].seconds
            shorter = [each for each in _SHORT if each < longest]
            found = self._first(found, index, "seconds", [*shorter, *filter(None, _rounded(longest))])
        return found

    def _breaks(self, faults: List[Fault]) -> bool:
        """Whether they break the promise; nothing does once the tries are over."""
        self._tries -= 1
        return self._tries >= 0 and promise(verdict(World(self._seed, faults))) == self._promise

    def _halved(self, faults: List[Fault]) -> List[Fault]:
        while len(faults) > 1:
            middle = len(faults) // 2
            half = next((each for each in (faults[:middle], faults[middle:]) if self._breaks(each)), None)
            if half is None:
                break
            faults = half
        return faults

    def _single(self, faults: List[Fault]) -> List[Fault]:
        index = 0
        while index < len(faults):
            fewer = faults[:index] + faults[index + 1 :]
            if self._breaks(fewer):
                faults = fewer
            else:
                index += 1
        return faults

    def _first(self, faults: List[Fault], index: int, field: str, values: List[float]) -> List[Fault]:
        """The faults, one of them with the first value that will do, if any."""
        for value in values:
            other: Any = {field: value}
            changed = [*faults[:index], faults[index]._replace(**other), *faults[index + 1 :]]
            if changed == faults or self._breaks(changed):
                return changed
        return faults


def shortest(seed: int, why: str, tries: int = TRIES) -> List[Fault]:
    """The faults of a seed, as short as they still break the same promise."""
    return Shortening(seed, why, tries).shortest(World(seed).faults)


def as_test(seed: int, why: str, faults: Sequence[Fault]) -> str:
    """A test of these faults, which fails as long as they break the promise."""
    lines = [f"        Fault({', '.join(map(_text, each))}),\n" for each in faults]
    made = f"[\n{''.join(lines)}    ]" if lines else "[]"
    return (
        f"def test_{'_'.join(promise(why).lower().split())}_of_seed_{seed}() -> None:\n"
        f"    # {' '.join(why.split())[:100]}\n"
        f"    faults: List[Fault] = {made}\n"
        f"    assert failure(World({seed}, faults)) is None\n"
    )


def write(test: str, path: Path = FOUND) -> bool:
    """Append a test; whether it was not there yet."""
    text = path.read_text() if path.exists() else _HEAD
    if test.split("(")[0] + "(" in text:
        return False
    path.write_text(f"{text.rstrip()}\n\n\n{test}")
    return True


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def _rounded(value: float) -> List[float]:
    return [round(round(value / step) * step, 1) for step in _STEPS]
