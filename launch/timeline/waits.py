"""The waits of a run: the tasks that wait now, and their blockers; the last workers and the long spans of past steps.

A worker in a late step asks the ps whether the step waits for that worker (``cluster.protocol.heartbeat``). If so, the
worker *owes* its gradient; otherwise the worker waits. The waiting workers wait for the tasks that owe a gradient, and
for tasks outside the step: tasks that start, save, are stopped, or have no process. The last worker of a step is found
without a common clock, because that worker waited least.
"""

from collections import Counter
from statistics import median
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cluster.protocol.flight_records import Span
from cluster.protocol.heartbeat import LATE_S, STEPS
from cluster.task import TRAINERS
from launch.timeline.flights import TaskLine, TimeLine

ANSWER_S = 5.0  # the ps answers within three seconds, and the next heartbeat has the answer
ACTIVITIES = {
    "starting": "it is starting",
    "saving": "it writes a checkpoint",
    "evaluating": "it measures a checkpoint",
    "comparing": "it compares with one process",
    "ending": "it has seen the last step",
}


class Blocker(NamedTuple):
    """A task that others wait for, and the reason in words."""

    line: TaskLine
    why: str


class Stall(NamedTuple):
    """A step that lasts too long.

    Attributes:
      step: the newest step that is known to have ended; None before the first.
      since: the time at which the last worker began the late step.
      until: the time at which the stall was observed.
      waiting: the tasks that wait.
      blockers: the tasks that the others wait for; empty where no task is known to owe a gradient.
      unanswered: tasks in a late step that have asked the ps, without an answer.
      undecided: tasks in a late step that have not asked yet.
    """

    step: Optional[int]
    since: float
    until: float
    waiting: List[TaskLine]
    blockers: List[Blocker]
    unanswered: List[TaskLine]
    undecided: List[TaskLine]


def stall(found: TimeLine) -> Optional[Stall]:
    """Return the current stall of a run; None where no step is late."""
    late = [line for line in found.lines if _is_late(line)]
    if not late:
        return None
    open_ones = [line for line in late if line.now and line.now.owes is None]
    unanswered = [line for line in open_ones if line.now and line.now.asked_s >= ANSWER_S]
    steps = [line.spans[-1].step for line in late if line.spans]
    return Stall(
        step=max(steps, default=None),
        since=max(map(_began, late)),
        until=found.until,
        waiting=[line for line in late if line.now and line.now.owes is False],
        blockers=[Blocker(line, why) for line in found.lines for why in _owed(line, line in late)],
        unanswered=unanswered,
        undecided=[line for line in open_ones if line not in unanswered],
    )


def _is_late(line: TaskLine) -> bool:
    """Return whether a task is in a late step; its last heartbeat may be older than its newest span."""
    now = line.now
    if now is None or not line.gives_signs or now.phase not in STEPS:
        return False
    return min(now.phase_s, line.until - _began(line)) >= LATE_S


def _began(line: TaskLine) -> float:
    """Return the start of a task's current phase: the end of its last span; without spans, by its heartbeat."""
    if line.spans:
        return line.spans[-1].ended
    return line.until - (line.now.phase_s if line.now else 0.0)


def _owed(line: TaskLine, is_late: bool) -> Iterator[str]:
    """Yield the reason why other tasks wait for this one, if they wait."""
    state = line.status.state if line.status else "running"
    if line.role not in (*TRAINERS, "ps"):
        return
    if state not in ("running", "starting"):
        yield f"it is {state}"
    elif line.now is None:
        yield "it gives no sign of life"
    elif not line.gives_signs:
        yield f"it has given no sign of life for {line.now.age_s:.0f} s"
    elif is_late and line.now.owes:
        yield "it has not sent its gradient"
    elif line.now.phase in ACTIVITIES:
        yield ACTIVITIES[line.now.phase]


FEWEST = 20  # the least number of steps for a statement
LONG_S, LONG_TIMES = 1.0, 5.0  # a long step takes at least both: these seconds, and this multiple of the median
MOST_LONG = 5


class WaitShares(NamedTuple):
    """The number of examined steps, and for each task how many of them it delayed, the largest number first.

    A worker delays a step if it is the last to send its gradient. A ps delays a step if a worker waits longest for that
    ps.
    """

    steps: int
    counts: List[Tuple[str, int]]


class LongSpan(NamedTuple):
    """A long step or a pause of a task, and the spans during that time, except for steps."""

    line: TaskLine
    span: Span
    meanwhile: List[Tuple[TaskLine, Span]]


def steps_of(line: TaskLine) -> List[Span]:
    """Return the spans of a task's steps."""
    return [span for span in line.spans if span.phase in STEPS]


def gave_last(found: TimeLine) -> WaitShares:
    """Return, for each worker, the number of steps in which it was the last to send its gradient."""
    waits: Dict[int, Dict[str, float]] = {}
    lines = [line for line in found.lines if any(span.waited_s is not None for span in line.spans)]
    for line in lines:
        for span in steps_of(line):
            if span.waited_s is not None and span.is_whole:
                waits.setdefault(span.step, {})[line.title] = span.waited_s
    whole = [of_step for of_step in waits.values() if len(of_step) == len(lines) > 1]
    return _shares(min(of_step, key=lambda title: of_step[title]) for of_step in whole)


def waited_longest_for(found: TimeLine) -> WaitShares:
    """Return, for each ps, the number of the workers' steps in which a worker waited longest for that ps."""
    spans = [span for line in found.lines for span in steps_of(line)]
    return _shares(f"ps:{span.longest.ps}" for span in spans if span.longest is not None)


def _shares(each: Iterator[str]) -> WaitShares:
    counts = Counter(each).most_common()
    steps = sum(count for _, count in counts)
    return WaitShares(steps, counts) if steps >= FEWEST else WaitShares(0, [])


def long_spans(found: TimeLine) -> List[LongSpan]:
    """Return the longest spans that are much longer than most steps, the longest first.

    The result has only the longest of the spans of one kind at the same global step. The first start of a task, its
    first steps and its end are omitted, because they take long in every run.
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
