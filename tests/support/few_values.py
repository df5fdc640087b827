"""One value of each test: what CI runs where all values have run before, on another machine or runtime."""

from typing import Any, Dict, Sequence, Set


def others(items: Sequence[Any]) -> Set[Any]:
    """Return the items of a collection but for the first of each test; a test is a function, with all its values."""
    first: Dict[str, Any] = {}
    for item in items:
        first.setdefault(item.nodeid.split("[")[0], item)
    return set(items) - set(first.values())
