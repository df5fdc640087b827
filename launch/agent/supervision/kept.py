"""A bounded part of an unbounded sequence: its first items, its newest, and its length."""

from collections import deque
from typing import Deque, Generic, Iterator, List, TypeVar

Item = TypeVar("Item")


class Kept(Generic[Item]):
    """The first and the newest of the items that were added.

    ``count`` is the number of all items that were added, the dropped ones included.

    Args:
      first: the number of earliest items that are never dropped.
      newest: the number of latest items that are kept.
    """

    def __init__(self, first: int, newest: int):
        self._most_first = first
        self._first: List[Item] = []
        self._newest: Deque[Item] = deque(maxlen=newest)
        self.count = 0

    def add(self, item: Item) -> None:
        """Add an item; an item in the middle may be dropped for it."""
        self.count += 1
        if len(self._first) < self._most_first:
            self._first.append(item)
        else:
            self._newest.append(item)

    def extend(self, other: "Kept[Item]") -> None:
        """Add all items of another sequence, and count the items that it has dropped."""
        for item in other:
            self.add(item)
        self.count += other.count - sum(1 for _ in other)

    def replace(self, old: Item, new: Item) -> None:
        """Put one item in another's place, or at the end if that was dropped."""
        for held in (self._first, self._newest):
            for place, item in enumerate(held):
                if item is old:
                    held[place] = new
                    return
        self.add(new)
        self.count -= 1

    def __iter__(self) -> Iterator[Item]:
        """Yield the kept items, oldest first."""
        yield from self._first
        yield from self._newest
