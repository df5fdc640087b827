"""A time line as the page of a run draws it: JSON values, with times in seconds before its end.

There are two windows. *Newest* has the newest steps, each by itself. *All* has everything that is known; where a task
has more spans than a picture has room for, consecutive steps are one piece, with the sum of their waits.
"""

from typing import Any, Dict, List, Optional, Sequence

from cluster.protocol.flight_records import Span
from cluster.protocol.heartbeat import STEPS
from launch.timeline.flights import TaskLine, TimeLine
from launch.timeline.waits import Stall, stall
from launch.timeline.words import lines

NEWEST = 40  # steps in the window of the newest
PIECES = 240  # of one task in the window of all
DIGITS = 4  # of a second

Piece = List[Any]  # seconds before the end, seconds, phase, first step, last step, seconds of waiting or None


def drawn(found: TimeLine) -> Dict[str, Any]:
    """Return the values of a time line."""
    seen = stall(found)
    return {
        "lines": lines(found),
        "windows": {
            "newest": _window(found, seen, _newest_from(found)),
            "all": _window(found, seen, min((line.spans[0].began for line in found.lines if line.spans), default=0.0)),
        },
    }


def _newest_from(found: TimeLine) -> float:
    """Return the begin of the window of the newest steps: the same number of steps of every task is in it."""
    steps = [[span for span in line.spans if span.phase in STEPS][-NEWEST:] for line in found.lines]
    return min((of_task[0].began for of_task in steps if of_task), default=found.until)


def _window(found: TimeLine, seen: Optional[Stall], since: float) -> Dict[str, Any]:
    rows = [
        {"name": line.name, "host": line.host, "none": line.why_none, "pieces": _pieces(found, line, seen, since)}
        for line in found.lines
    ]
    return {"seconds": round(max(0.0, found.until - since), DIGITS), "rows": rows}


def _pieces(found: TimeLine, line: TaskLine, seen: Optional[Stall], since: float) -> List[Piece]:
    spans = [span for span in line.spans if span.ended > since]
    together = 1 + len(spans) // PIECES
    pieces = [_piece(found.until, max(since, each[0].began), each) for each in _groups(spans, together)]
    return [*pieces, *_current(found, line, seen, since)]


def _groups(spans: Sequence[Span], together: int) -> List[List[Span]]:
    """Return consecutive steps of one phase, so many together; all other spans by themselves."""
    groups: List[List[Span]] = []
    for span in spans:
        last = groups[-1][-1] if groups else None
        joins = last is not None and last.phase == span.phase == "step" and last.attempt == span.attempt
        if joins and len(groups[-1]) < together:
            groups[-1].append(span)
        else:
            groups.append([span])
    return groups


def _piece(until: float, began: float, spans: Sequence[Span]) -> Piece:
    waits = [span.waited_s for span in spans if span.waited_s is not None]
    first, last = spans[0], spans[-1]
    phase = last.phase if last.is_whole else "broken off"
    return [
        round(until - began, DIGITS), round(last.ended - began, DIGITS), phase, first.step, last.step,
        round(sum(waits), DIGITS) if waits else None,
    ]  # fmt: skip


def _current(found: TimeLine, line: TaskLine, seen: Optional[Stall], since: float) -> List[Piece]:
    """Return the span that a task is in now, as far as is known."""
    if line.now is None or line.name.startswith("ps:") or not line.spans:
        return []
    began = max(since, line.spans[-1].ended)
    phase, step = _phase_now(line, seen), line.spans[-1].step + 1
    return [[round(found.until - began, DIGITS), round(max(0.0, line.until - began), DIGITS), phase, step, step, None]]


def _phase_now(line: TaskLine, seen: Optional[Stall]) -> str:
    """Return ``waits`` or ``blocks`` for a task of a stall, else the phase of its sign."""
    if seen is not None:
        if any(each.line is line for each in seen.blockers):
            return "blocks"
        if any(each is line for each in seen.waiting):
            return "waits"
    return line.now.phase if line.now else "unknown"
