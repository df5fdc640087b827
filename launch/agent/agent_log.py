"""What an agent says goes to its log; a log that cannot be written, on a full disk, is no reason to end a run."""

import contextlib
from typing import Set

_said: Set[str] = set()


def say(text: str) -> None:
    """A line in the agent's log."""
    with contextlib.suppress(OSError):
        print(text, flush=True)


def say_once(text: str) -> None:
    """A line that is said again and again only the first time."""
    if text not in _said:
        _said.add(text)
        say(text)
