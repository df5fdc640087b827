"""A trace as Perfetto (ui.perfetto.dev) and chrome://tracing read it: the Trace Event Format, in JSON.

A device is a process, and what it does are its threads: ``pulls``, ``compute``, ``pushes``, ``waiting``, ``other
transfers``. What lasted at the same time in one of them lies in further threads of the same name. A transfer is
shown at both of its ends. Times are microseconds since the step began.
"""

from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.trace.spans import COMPUTE, OTHERS, PULLS, PUSHES, WAITING, ClockCorrection, DevicePlace, TraceSpan

STEP = "step"  # the lane of the whole step, as the worker's own Python saw it
_LANES = (STEP, PULLS, COMPUTE, PUSHES, WAITING, OTHERS)
_CROWD = 100_000  # more than the threads of one name will be: their numbers are from here on, or twice that, …


class Whole(NamedTuple):
    """The step of one worker: its number, and its ``session.run`` calls.

    ``runs``: (start, duration) of each call in microseconds. ``unrecorded``: the number of transfers that TensorFlow
    did not record.
    """

    task: str
    step: int
    runs: Sequence[Tuple[int, int]]
    unrecorded: int = 0


def trace(whole: Whole, found: Iterable[TraceSpan], clocks: Mapping[str, ClockCorrection]) -> Dict[str, Any]:
    """Return the file's content; ``found`` are on one clock already."""
    own = DevicePlace(whole.task, "")
    steps = [TraceSpan(own, STEP, f"step {whole.step}", *run) for run in whole.runs]
    seen = [*steps, *(each for span in found for each in _at_both_ends(span))]
    began_us = min(span.start_us for span in seen)  # a ps's clock may be a little behind
    places = sorted({span.place for span in seen}, key=lambda place: (place.task != whole.task, place))
    events: List[Dict[str, Any]] = []
    for pid, place in enumerate(places, 1):
        events += _process(pid, place)
        for lane in _LANES:
            events += _lane(pid, lane, [span for span in seen if (span.place, span.lane) == (place, lane)], began_us)
    by_task = {task: dict(clock._asdict()) for task, clock in clocks.items()}
    other = {
        "task": whole.task,
        "step": whole.step,
        "began_us": began_us,
        "unrecorded_transfers": whole.unrecorded,
        "clocks": by_task,
    }
    return {"traceEvents": events, "displayTimeUnit": "ms", "otherData": other}


def _at_both_ends(span: TraceSpan) -> Iterator[TraceSpan]:
    yield span
    if span.transfer is not None and span.transfer.source != span.place:
        yield span._replace(place=span.transfer.source)


def _process(pid: int, place: DevicePlace) -> Iterator[Dict[str, Any]]:
    name = place.task if place.is_ps else f"{place.task} {place.unit}".rstrip()
    yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
    yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}


def _lane(pid: int, lane: str, found: Sequence[TraceSpan], began_us: int) -> Iterator[Dict[str, Any]]:
    first = _LANES.index(lane) * _CROWD + 1
    for index, thread in enumerate(_without_overlap(found)):
        tid = first + index
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": lane}}
        yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_sort_index", "args": {"sort_index": tid}}
        for span in thread:
            times = {"ts": span.start_us - began_us, "dur": span.duration_us}
            yield {"ph": "X", "pid": pid, "tid": tid, "cat": lane, "name": span.name, **times, "args": _describe(span)}


def _describe(span: TraceSpan) -> Dict[str, Any]:
    transfer = span.transfer
    if transfer is None:
        return {}
    described = {
        "bytes": transfer.size,
        "tensor": transfer.tensor,
        "from": transfer.source.task,
        "to": transfer.target.task,
    }
    return {**described, "variables": list(span.variables)} if span.variables else described


def _without_overlap(found: Sequence[TraceSpan]) -> List[List[TraceSpan]]:
    """Return the spans dealt out so that those of one list follow each other: as few lists as that takes."""
    threads: List[List[TraceSpan]] = []
    for span in sorted(found, key=lambda span: span.start_us):
        free = (thread for thread in threads if thread[-1].start_us + thread[-1].duration_us <= span.start_us)
        thread = next(free, None)
        if thread is None:
            threads.append([span])
        else:
            thread.append(span)
    return threads
