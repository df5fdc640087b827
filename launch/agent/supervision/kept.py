"""A bounded part of what may go on for ever: the first few, the newest few, and how many there were."""

from collections import deque
from typing import Deque, Generic, Iterator, List, TypeVar

Item = TypeVar("Item")


class Kept(Generic[Item]):
    """``count`` is of all that were added, the dropped ones too.

    Args:
      first: so many of the earliest are never dropped.
      newest: and so many of the latest.
    """

    def __init__(self, first: int, newest: int):
        self._most_first = first
        self._first: List[Item] = []
        self._newest: Deque[Item] = deque(maxlen=newest)
        self.count = 0

    def add(self, item: Item) -> None:
        """Takes in one more; one in the middle may be dropped for it."""
        self.count += 1
        if len(self._first) < self._most_first:
            self._first.append(item)
        else:
            self._newest.append(item)

    def extend(self, other: "Kept[Item]") -> None:
        """Takes in all of another, and counts what it has dropped."""
        for item in other:
            self.add(item)
        self.count += other.count - sum(1 for _ in other)

    def replace(self, old: Item, new: Item) -> None:
        """Puts one in another's place; if that was dropped, at the end."""
        for held in (self._first, self._newest):
            for place, item in enumerate(held):
                if item is old:
                    held[place] = new
                    return
        self.add(new)
        self.count -= 1

    def __iter__(self) -> Iterator[Item]:
        """What is kept, oldest first."""
        yield from self._first
        yield from self._newest
