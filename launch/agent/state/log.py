"""The agent's log.

An error while writing the log, as on a full disk, must not end a run.
"""

import contextlib
import sys
import time
from typing import Callable, Dict, Set, Tuple

SELDOM_S = 60.0
_said: Set[str] = set()
_seldom: Dict[str, Tuple[float, int]] = {}  # {kind: (time of the last line, lines left out since)}


def say(text: str) -> None:
    """Print a line to the agent's log, or to the stderr of a verb, whose stdout has its answers."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def say_once(text: str) -> None:
    """Print a line as ``say`` does, unless this process has printed an equal line before."""
    if text not in _said:
        _said.add(text)
        say(text)


def say_seldom(kind: str, text: str, clock: Callable[[], float] = time.monotonic) -> None:
    """Log at most one line of a ``kind`` every ``SELDOM_S`` seconds: strangers may cause any number of lines."""
    now = clock()
    written_at, left_out = _seldom.get(kind, (now - SELDOM_S, 0))
    if now - written_at < SELDOM_S:
        _seldom[kind] = (written_at, left_out + 1)
        return
    _seldom[kind] = (now, 0)
    say(text + (f"; {left_out} such lines before it were left out" if left_out else ""))
