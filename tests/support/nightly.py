"""Values of a parameter that only ``make nightly`` tests: the many seeds of a claim that ``make test`` shows with one.

The mark ``nightly`` also stands before whole tests. ``--nightly`` runs these, and no others.
"""

from typing import Any, Iterable, List

import pytest


def few(values: Iterable[Any], always: Iterable[Any]) -> List[Any]:
    """Return the values of a parameter, each with the mark ``nightly`` that is not among ``always``.

    Raises:
      AssertionError: ``make test`` would have none, or one that is no value.
    """
    found, kept = list(values), list(always)
    if not kept or any(each not in found for each in kept):
        raise AssertionError(f"expected some of {found} for make test, found {kept}")
    return [each if each in kept else pytest.param(*_arguments(each), marks=pytest.mark.nightly) for each in found]


def _arguments(value: Any) -> Iterable[Any]:
    return value if isinstance(value, tuple) else (value,)
