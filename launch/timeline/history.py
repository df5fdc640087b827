"""The past steps of a run: who gave last, what took long and what happened meanwhile, where workers waited.

Who gave last needs no common clock: of the workers of one step, that one waited least.
"""

from collections import Counter
from statistics import median
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

from cluster.protocol.flight_records import Span
from cluster.protocol.heartbeat import STEPS
from launch.timeline.flights import TaskLine, TimeLine

FEWEST = 20  # steps from which something follows
LONG_S, LONG_TIMES = 1.0, 5.0  # a long step takes at least so many seconds, and so many times the median
MOST_LONG = 5


class Shares(NamedTuple):
    """The tasks, or ps, by the number of steps in which each was the one; the largest number first."""

    steps: int
    counts: List[Tuple[str, int]]


class LongSpan(NamedTuple):
    """A step that took long at a task, or a pause, and what tasks did meanwhile that was no step."""

    line: TaskLine
    span: Span
    meanwhile: List[Tuple[TaskLine, Span]]


def steps_of(line: TaskLine) -> List[Span]:
    """Return the spans of a task's steps."""
    return [span for span in line.spans if span.phase in STEPS]


def gave_last(found: TimeLine) -> Shares:
    """Return how often each worker was the last to give its gradient."""
    waits: Dict[int, Dict[str, float]] = {}
    lines = [line for line in found.lines if any(span.waited_s is not None for span in line.spans)]
    for line in lines:
        for span in steps_of(line):
            if span.waited_s is not None and span.is_whole:
                waits.setdefault(span.step, {})[line.title] = span.waited_s
    whole = [of_step for of_step in waits.values() if len(of_step) == len(lines) > 1]
    return _shares(min(of_step, key=lambda title: of_step[title]) for of_step in whole)


def waited_longest_for(found: TimeLine) -> Shares:
    """Return how often workers waited longest for each ps."""
    spans = [span for line in found.lines for span in steps_of(line)]
    return _shares(f"ps:{span.longest.ps}" for span in spans if span.longest is not None)


def _shares(each: Iterator[str]) -> Shares:
    counts = Counter(each).most_common()
    steps = sum(count for _, count in counts)
    return Shares(steps, counts) if steps >= FEWEST else Shares(0, [])


def long_spans(found: TimeLine) -> List[LongSpan]:
    """Return the longest spans that are much longer than most steps, the longest first.

    Of the spans of one kind at the same global step, only the longest is among them. The first start of a task, its
    first steps and its end take their time in every run.
    """
    steps = [_took(span) for line in found.lines for span in steps_of(line)]
    if len(steps) < FEWEST:
        return []
    limit_s = max(LONG_S, LONG_TIMES * median(steps))
    longest: Dict[Tuple[str, int], Tuple[TaskLine, Span]] = {}
    for line, span in sorted(_unusual(found), key=lambda each: _took(each[1])):
        if _took(span) >= limit_s:
            longest[span.phase, span.step] = (line, span)
    chosen = sorted(longest.values(), key=lambda each: -_took(each[1]))[:MOST_LONG]
    return [LongSpan(line, span, list(_meanwhile(found.lines, span))) for line, span in chosen]


def _unusual(found: TimeLine) -> Iterator[Tuple[TaskLine, Span]]:
    for line in found.lines:
        for place, span in enumerate(line.spans):
            is_first_start = place == 0 and span.phase == "starting" and not span.attempt
            if span.phase not in ("first step", "ending") and not is_first_start:
                yield line, span


def _meanwhile(lines: Sequence[TaskLine], during: Span) -> Iterator[Tuple[TaskLine, Span]]:
    for line in lines:
        for span in line.spans:
            overlap = min(span.ended, during.ended) - max(span.began, during.began)
            if span.phase not in STEPS and span is not during and overlap > _took(during) / 4:
                yield line, span


def _took(span: Span) -> float:
    return span.ended - span.began
