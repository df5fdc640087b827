"""Differences between the settings of runs, which are their arguments and their keys of ``train``."""

import json
from typing import Any, Dict, Iterator, List, NamedTuple, Sequence

from launch.status.run import RunRecord
from launch.view.run_text import ABSENT


class Difference(NamedTuple):
    """A key with different values; None stands for a missing value."""

    key: str
    before: Any
    now: Any


def arguments(run: RunRecord) -> Dict[str, Any]:
    """Return one mapping with the arguments of a run and with its keys of ``train``, named ``train.KEY``."""
    return {**run.args, **{f"train.{key}": value for key, value in run.train.items()}}


def differing(runs: Sequence[RunRecord]) -> Dict[str, List[Any]]:
    """Return the arguments that are not the same in all runs, with the value of each run."""
    known = [arguments(run) for run in runs]
    names = dict.fromkeys(name for each in known for name in each)
    values = {name: [each.get(name) for each in known] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}


def between(before: Any, now: Any, key: str = "") -> Iterator[Difference]:
    """Yield each key whose values differ, down to the keys of inner mappings: ``args.hidden``.

    Args:
      key: the name of the values themselves; "" for the whole of two hosts files.
    """
    if isinstance(before, dict) and isinstance(now, dict):
        for name in dict.fromkeys([*before, *now]):
            yield from between(before.get(name), now.get(name), f"{key}.{name}" if key else name)
    elif before != now:
        yield Difference(key, before, now)


def in_words(value: Any) -> str:
    """Return a value as in a hosts file."""
    return ABSENT if value is None else value if isinstance(value, str) else json.dumps(value)
