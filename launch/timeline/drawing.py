"""The time line of a run for people: as lines of text, and as JSON values that the page of the run draws.

The lines describe the current stall, the past steps, and the gaps in the data.

The picture has two windows, with times in seconds before its end. *Newest* has the newest steps, each as one piece.
*All* has all known spans. Where a task has more spans than fit, consecutive steps form one piece, with the sum of their
waits.
"""

import math
import time
from typing import Any, Dict, Iterator, List, Optional, Sequence

from cluster.protocol.flight_records import Span
from cluster.protocol.heartbeat import STEPS
from cluster.protocol.quantity import quantity
from launch.agent.wire.flight import Exchanged
from launch.timeline.flights import TaskLine, TimeLine
from launch.timeline.waits import LongSpan, Stall, WaitShares, gave_last, long_spans, stall, waited_longest_for

MOST_NAMED = 6
COARSE_S = 0.001  # a smaller error of a clock is not reported
NONE = "a ps and a program under `command:` have no flight recorder"
PS = "a ps runs no steps of its own: the lines about it show the exchange that workers recorded"


def lines(found: TimeLine) -> List[str]:
    """Return the time line as lines of text."""
    if not any(line.spans for line in found.lines):
        return [f"no task has recorded a step; {NONE}"]
    now = stall(found)
    return [
        *(stalled(now) if now else []),
        *_shares("last to send its gradient", gave_last(found)),
        *map(long_span, long_spans(found)),
        *_exchanges(found),
        *(_shares("workers waited longest for", waited_longest_for(found)) if _has_several_ps(found) else []),
        *limits(found),
    ]


def stalled(found: Stall) -> List[str]:
    """Return a stall as lines: ``step 841, since 12:03:04 UTC (35 s): worker:0 waits for worker:1, …``."""
    step = "a step" if found.step is None else f"step {found.step + 1}"
    when = f"{step}, since {clock(found.since)} ({found.until - found.since:.0f} s)"
    return [f"{when}: {line}" for line in (*_waits(found), *_unknown(found))]


def _waits(found: Stall) -> Iterator[str]:
    """Yield the tasks that wait, and the tasks that block them."""
    verb = "waits" if len(found.waiting) == 1 else "wait"
    if found.waiting and found.blockers:
        yield f"{_names(found.waiting)} {verb} for {_names([each.line for each in found.blockers])}"
    elif found.waiting:
        yield f"{_names(found.waiting)} {verb}, but no task owes a gradient; check the ps and the network"
    yield from (f"{each.line.title}: {each.why}" for each in found.blockers[:MOST_NAMED])


def _unknown(found: Stall) -> Iterator[str]:
    """Yield the tasks about which only the long duration of their step is known."""
    if found.unanswered:
        yield f"{_names(found.unanswered)} asked the ps, but got no answer; check the ps and the network"
    if found.undecided:
        yield f"{_names(found.undecided)} {'has' if len(found.undecided) == 1 else 'have'} not ended the step"


def _names(chosen: Sequence[TaskLine]) -> str:
    more = len(chosen) - MOST_NAMED
    named = ", ".join(line.title for line in chosen[:MOST_NAMED])
    return named if more <= 0 else f"{named} and {more} more"


def _shares(what: str, found: WaitShares) -> Iterator[str]:
    if found.counts:
        counted = ", ".join(f"{title} in {count}" for title, count in found.counts[:MOST_NAMED])
        yield f"{what}, of {found.steps} steps: {counted}"


def long_span(found: LongSpan) -> str:
    """Return a line about a long step or pause, with the other events during that time."""
    span = found.span
    meanwhile = "; ".join(f"{line.title} {each.phase} {_seconds(each)}" for line, each in found.meanwhile[:MOST_NAMED])
    what = f"step {span.step}" if span.phase == "step" else f"{span.phase} at step {span.step}"
    waited = "" if span.waited_s is None else f", of which it waited {span.waited_s:.1f} s"
    where = f"{_seconds(span)} at {found.line.title} from {clock(span.began)}"
    return f"long {what}: {where}{waited}{f'; meanwhile: {meanwhile}' if meanwhile else ''}"


def _seconds(span: Span) -> str:
    return f"{span.ended - span.began:.1f} s"


def _exchanges(found: TimeLine) -> List[str]:
    """Return what a worker exchanges with each ps, of the first worker that reports it: in a step, or in a window."""
    known: Sequence[Exchanged] = next((line.flight.exchanged for line in found.lines if line.flight.exchanged), [])
    return _first([
        f"ps:{index}: each exchange of a worker has {quantity(each.pushes, 'push', 'pushes')} and as many pulls,"
        f" {each.bytes:,} bytes of variables"
        for index, each in enumerate(known)
    ])  # fmt: skip


def _has_several_ps(found: TimeLine) -> bool:
    return any(len(line.flight.exchanged) > 1 for line in found.lines)


def limits(found: TimeLine) -> List[str]:
    """Return a bounded number of lines about the data that the time line lacks, and about inexact times."""
    others = [line for line in found.lines if line.role != "ps"]
    torn = [
        f"{line.title}: {quantity(line.flight.torn, 'torn record')} left out"
        for line in found.lines
        if line.flight.torn
    ]
    without = [f"{line.title}: {line.flight.why_none}" for line in others if line.flight.why_none]
    has_ps = len(others) < len(found.lines)
    return [*([PS] if has_ps else []), *_first(torn), *_first(without), *clock_errors(found)]


def _first(lines: List[str]) -> List[str]:
    more = len(lines) - MOST_NAMED
    return lines if more <= 0 else [*lines[:MOST_NAMED], f"and {more} more likewise"]


def clock_errors(found: TimeLine) -> List[str]:
    """Return lines about the largest errors of the hosts' times on the clock of the time line."""
    errors = {line.host: line.error_s for line in found.lines if line.spans}
    unknown = [host for host, error_s in errors.items() if math.isinf(error_s)]
    known = {host: error_s for host, error_s in errors.items() if COARSE_S <= error_s < math.inf}
    said = _first([f"{host}: its clock's offset from that of {found.reference} is unknown" for host in unknown])
    if known:
        host = max(known, key=lambda host: known[host])
        exact = f"times are exact to {known[host]:.3f} s against the clock of {found.reference}"
        said.append(f"{exact}; the least exact are those of {host}" if len(known) > 1 else f"{host}: {exact}")
    return said


def clock(seconds: float) -> str:
    """Return a time of day in words: ``12:03:04 UTC``."""
    return time.strftime("%H:%M:%S UTC", time.gmtime(seconds))


NEWEST = 40  # steps in the window of the newest
PIECES = 240  # pieces of one task in the window of all spans
DIGITS = 4  # decimal places of a second

Piece = List[Any]  # seconds before the end, seconds, phase, first step, last step, seconds of waiting or None


def drawn(found: TimeLine) -> Dict[str, Any]:
    """Return the values from which the page of a run draws the time line."""
    seen = stall(found)
    return {
        "lines": lines(found),
        "windows": {
            "newest": _window(found, seen, _newest_from(found)),
            "all": _window(found, seen, min((line.spans[0].began for line in found.lines if line.spans), default=0.0)),
        },
    }


def _newest_from(found: TimeLine) -> float:
    """Return the start of the window of the newest steps, which has the last ``NEWEST`` steps of every task."""
    steps = [[span for span in line.spans if span.phase in STEPS][-NEWEST:] for line in found.lines]
    return min((of_task[0].began for of_task in steps if of_task), default=found.until)


def _window(found: TimeLine, seen: Optional[Stall], since: float) -> Dict[str, Any]:
    rows = [
        {
            "name": line.name,
            "host": line.host,
            "none": line.flight.why_none,
            "pieces": _pieces(found, line, seen, since),
        }
        for line in found.lines
    ]
    return {"seconds": round(max(0.0, found.until - since), DIGITS), "rows": rows}


def _pieces(found: TimeLine, line: TaskLine, seen: Optional[Stall], since: float) -> List[Piece]:
    spans = [span for span in line.spans if span.ended > since]
    together = 1 + len(spans) // PIECES
    pieces = [_piece(found.until, max(since, each[0].began), each) for each in _groups(spans, together)]
    return [*pieces, *_current(found, line, seen, since)]


def _groups(spans: Sequence[Span], together: int) -> List[List[Span]]:
    """Group consecutive steps of one attempt, ``together`` in a group; every other span is its own group."""
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
    """Return the current span of a task; empty where the span is unknown."""
    if line.now is None or line.role == "ps" or not line.spans:
        return []
    began = max(since, line.spans[-1].ended)
    phase, step = _phase_now(line, seen), line.spans[-1].step + 1
    return [[round(found.until - began, DIGITS), round(max(0.0, line.until - began), DIGITS), phase, step, step, None]]


def _phase_now(line: TaskLine, seen: Optional[Stall]) -> str:
    """Return ``waits`` or ``blocks`` for a task of a stall, else the phase in the task's last heartbeat."""
    if seen is not None:
        if any(each.line is line for each in seen.blockers):
            return "blocks"
        if any(each is line for each in seen.waiting):
            return "waits"
    return line.now.phase if line.now else "unknown"
