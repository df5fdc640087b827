"""States by number, how they are reached, and from which of them the end is not."""

from array import array
from typing import Dict, Generic, Iterator, List, Optional, TypeVar

import numpy as np

T = TypeVar("T")


class Numbers(Generic[T]):
    """A number for each different thing."""

    def __init__(self) -> None:
        self._things: List[T] = []
        self._numbers: Dict[T, int] = {}

    def of(self, thing: T) -> int:
        """Return the number of a thing."""
        number = self._numbers.setdefault(thing, len(self._things))
        if number == len(self._things):
            self._things.append(thing)
        return number

    def __getitem__(self, number: int) -> T:
        return self._things[number]


class Reached:
    """The states that are reached, in the order in which they are; a state is bytes, as there are millions.

    Attributes:
      ends: the numbers of the states in which all is done.
    """

    def __init__(self, first: bytes):
        self.states = [first]
        self.ends = array("i")
        self._numbers = {first: 0}
        self._before = array("i", [0])
        self._sources, self._targets = array("i"), array("i")  # of the ways without a death

    def add(self, before: int, state: bytes, is_death: bool) -> None:
        """Note that a state is reached from the one with the number ``before``."""
        number = self._numbers.setdefault(state, len(self.states))
        if number == len(self.states):
            self.states.append(state)
            self._before.append(before)
        if not is_death:
            self._sources.append(before)
            self._targets.append(number)

    def way(self, number: int) -> Iterator[bytes]:
        """Return the states on a shortest way to the one with this number, after the first."""
        numbers = [number]
        while numbers[-1]:
            numbers.append(self._before[numbers[-1]])
        for each in numbers[-2::-1]:
            yield self.states[each]

    def stuck(self) -> Optional[int]:
        """Return the number of a state from which no end can be reached without a death; None for none."""
        sources, targets = np.frombuffer(self._sources, np.int32), np.frombuffer(self._targets, np.int32)
        good = np.zeros(len(self.states), bool)
        good[np.frombuffer(self.ends, np.int32)] = True
        number = -1
        while number < np.count_nonzero(good):
            number = np.count_nonzero(good)
            good[sources[good[targets]]] = True
        return None if good.all() else int(np.argmin(good))
