"""Put the times of hosts whose clocks differ on the worker's clock, by their transfers.

Nothing arrives before it was made.
"""

from typing import Dict, Iterable, List, NamedTuple, Tuple

from cluster.trace.spans import Span


class Clock(NamedTuple):
    """The correction of a task's times, and the error that the correction may have.

    Add ``shift_us`` to the times of the task. Both are 0 where its times agree as they are.
    """

    shift_us: int
    uncertain_us: int


def clocks(found: Iterable[Span], own: str) -> Dict[str, Clock]:
    """Return the clock of every task but ``own``, whose times all others are put on.

    A tensor from ``own`` bounds how far ahead a clock can be, and a tensor to ``own`` how far behind. Where both bounds
    leave room for 0, nothing is known against that clock. Elsewhere the shift is the middle of the bounds.
    """
    found = list(found)
    least, most = _bounds(found, own)
    others = {task for span in found for task in _tasks(span)} - {own}
    return {task: _between(least.get(task, []), most.get(task, [])) for task in sorted(others)}


def on_one_clock(found: Iterable[Span], by_task: Dict[str, Clock]) -> List[Span]:
    """Return the same spans with their times put on the worker's clock."""
    still = Clock(0, 0)
    return [span._replace(start_us=span.start_us + by_task.get(span.place.task, still).shift_us) for span in found]


def _tasks(span: Span) -> Tuple[str, ...]:
    return (span.place.task, span.transfer.source.task) if span.transfer else (span.place.task,)


def _bounds(found: List[Span], own: str) -> Tuple[Dict[str, List[int]], Dict[str, List[int]]]:
    """Return the lower and the upper bounds of each task's shift."""
    made: Dict[Tuple[str, str], int] = {}  # no earlier than the operation began
    for span in reversed(found):
        if span.transfer is None:
            made[span.place.task, span.name] = span.start_us
    least: Dict[str, List[int]] = {}
    most: Dict[str, List[int]] = {}
    for span in found:
        transfer = span.transfer
        began = made.get((transfer.source.task, transfer.tensor)) if transfer else None
        if transfer is None or began is None or transfer.source.task == transfer.target.task:
            continue
        took = span.start_us + span.duration_us - began
        if transfer.source.task == own:
            least.setdefault(transfer.target.task, []).append(-took)
        elif transfer.target.task == own:
            most.setdefault(transfer.source.task, []).append(took)
    return least, most


def _between(least: List[int], most: List[int]) -> Clock:
    low, high = max(least, default=None), min(most, default=None)
    if (low is None or low <= 0) and (high is None or high >= 0):
        return Clock(0, 0)
    known = [bound for bound in (low, high) if bound is not None]
    return Clock(sum(known) // len(known), abs(known[-1] - known[0]) // 2)
