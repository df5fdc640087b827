"""The differences of the hosts' clocks, from one fact: no event comes before its cause.

Every number compares one host with the *reference*, the chief's host. A shift, added to a host's times, gives times of
the reference. Two kinds of evidence bound a shift:

* **An exchange of times.** A host reads its clock after the launcher's question and before its answer.
* **Common steps.** A synchronous step ends at a worker only when every worker has sent its gradient. So a step ends
  on one host after the other host's worker has sent its gradient, and the other way round. Over many steps the bounds
  become narrow, without a message.

The chief releases all workers at once, so common steps should end at the same time. Within the bounds, the shift is
therefore the median difference of their ends. Without common steps, the shift is the middle of the bounds.
"""

import math
from statistics import median
from typing import Dict, Mapping, NamedTuple, Optional, Sequence

from cluster.protocol.flight_records import Span


class ClockShift(NamedTuple):
    """The seconds by which a host's clock is ahead of the launcher's, and the largest error of that number."""

    ahead_s: float
    error_s: float


class Shift(NamedTuple):
    """The seconds to add to a host's times, and the largest error, which is infinite without evidence."""

    seconds: float
    error_s: float


class Bounds(NamedTuple):
    """The least and the largest shift that the evidence allows."""

    low: float = -math.inf
    high: float = math.inf

    @property
    def is_possible(self) -> bool:
        """Return whether any shift is within the bounds."""
        return self.low <= self.high

    def within(self, other: "Bounds") -> "Bounds":
        """Return the intersection of both bounds."""
        return Bounds(max(self.low, other.low), min(self.high, other.high))


NONE = Bounds()


def shifts(
    spans: Mapping[str, Sequence[Sequence[Span]]], exchanged: Mapping[str, ClockShift], reference: str
) -> Dict[str, Shift]:
    """Return the shift of every host.

    Args:
      spans: by host, the spans of each task whose steps are common to all workers.
      exchanged: by host, the clock as measured by an exchange, where one was made.
      reference: the host whose times do not change.
    """
    fixed = [_steps(each) for each in spans.get(reference, ())]
    found = {}
    for host, tasks in spans.items():
        pairs = [(steps, other) for steps in map(_steps, tasks) for other in fixed]
        found[host] = Shift(0.0, 0.0) if host == reference else _shift(
            bounds_of_exchange(exchanged.get(host), exchanged.get(reference)), pairs
        )  # fmt: skip
    return found


def bounds_of_exchange(host: Optional[ClockShift], reference: Optional[ClockShift]) -> Bounds:
    """Return the bounds of a host's shift, from the exchanges of the host and of the reference with the launcher."""
    if host is None or reference is None:
        return NONE
    middle, error_s = reference.ahead_s - host.ahead_s, reference.error_s + host.error_s
    return Bounds(middle - error_s, middle + error_s)


def bounds_of_steps(steps: Mapping[int, Span], reference: Mapping[int, Span]) -> Bounds:
    """Return the bounds of a host's shift, from the common steps of its task and of a task of the reference."""
    common = [(steps[step], reference[step]) for step in steps.keys() & reference.keys()]
    return Bounds(
        max((_given(fixed) - own.ended for own, fixed in common), default=-math.inf),
        min((fixed.ended - _given(own) for own, fixed in common), default=math.inf),
    )


def _given(span: Span) -> float:
    """Return a time before which a worker cannot have sent its last gradient of a step.

    Where a step has one wait, the time is the beginning of that wait. A step with a wait for each ps has no such
    moment, so the time is the beginning of the step.
    """
    alone = span.waited_s is not None and span.longest is None
    return span.ended - (span.waited_s or 0.0) if alone else span.began


def _steps(spans: Sequence[Span]) -> Dict[int, Span]:
    """Return the synchronous steps that a task has taken exactly once.

    After a rollback, the same step number may mean another step on another host.
    """
    found: Dict[int, Span] = {}
    again = set()
    for span in spans:
        if span.phase in ("step", "first step") and span.is_whole and span.waited_s is not None:
            again.update({span.step} & found.keys())
            found[span.step] = span
    return {step: span for step, span in found.items() if step not in again}


def _shift(exchanged: Bounds, pairs: Sequence[Sequence[Mapping[int, Span]]]) -> Shift:
    by_steps = NONE
    ends = []
    for steps, reference in pairs:
        by_steps = by_steps.within(bounds_of_steps(steps, reference))
        ends += [reference[step].ended - steps[step].ended for step in steps.keys() & reference.keys()]
    if not by_steps.is_possible:  # no steps of the same training
        by_steps, ends = NONE, []
    both = exchanged.within(by_steps)
    bounds = both if both.is_possible else by_steps  # a clock has jumped, or runs at a different rate
    middle = median(ends) if ends else _middle(bounds)
    seconds = min(max(middle, bounds.low), bounds.high)
    return Shift(seconds, max(bounds.high - seconds, seconds - bounds.low))


def _middle(bounds: Bounds) -> float:
    return (bounds.low + bounds.high) / 2 if math.isfinite(bounds.high - bounds.low) else 0.0
