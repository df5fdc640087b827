"""A trace as Perfetto (ui.perfetto.dev) and chrome://tracing read it: the Trace Event Format, in JSON.

A device is a process, and its activities are threads: ``pulls``, ``compute``, ``pushes``, ``waiting``,
``other transfers``. Simultaneous spans of one activity are in further threads of the same name. A transfer is shown at
both of its ends. Times are microseconds since the step began.

``picture`` draws such a file in SVG, which any browser shows.
"""

from html import escape
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Sequence, Tuple

from cluster.trace.spans import COMPUTE, OTHERS, PULLS, PUSHES, WAITING, ClockCorrection, DevicePlace, TraceSpan

STEP = "step"  # the lane of the whole step, as measured by the worker's own Python
_COLOURS = {
    STEP: "#8c8c8c",
    PULLS: "#3b75af",
    COMPUTE: "#519e3e",
    PUSHES: "#ef8636",
    WAITING: "#cfcfcf",
    OTHERS: "#c53a32",
}
_LANES = tuple(_COLOURS)
_CROWD = 100_000  # more than the threads of one name; further names are numbered from here on, or from twice that, …
_WIDTH, _LEFT, _RIGHT, _TOP, _FOOT = 960, 150, 20, 34, 30  # of the drawing, and its margins, in pixels
_LINE, _MOST = 12, 60  # pixels of a line, and of a line with many simultaneous spans
_LEAST = 0.5  # pixels of the shortest span
_TICKS = 10  # at most


class Whole(NamedTuple):
    """The traced step of one worker: its number, and its ``session.run`` calls.

    ``runs``: (start, duration) of each call in microseconds. ``unrecorded``: the number of transfers that TensorFlow
    did not record.
    """

    task: str
    step: int
    runs: Sequence[Tuple[int, int]]
    unrecorded: int = 0


def trace(whole: Whole, found: Iterable[TraceSpan], clocks: Mapping[str, ClockCorrection]) -> Dict[str, Any]:
    """Return the content of a trace file.

    Args:
      whole: the traced step.
      found: its spans, with times that are already on one clock.
      clocks: the clock correction of each task, which the file describes.
    """
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
    """Return the spans in as few lists as possible such that the spans of one list do not overlap."""
    threads: List[List[TraceSpan]] = []
    for span in sorted(found, key=lambda span: span.start_us):
        free = (thread for thread in threads if thread[-1].start_us + thread[-1].duration_us <= span.start_us)
        thread = next(free, None)
        if thread is None:
            threads.append([span])
        else:
            thread.append(span)
    return threads


class Line(NamedTuple):
    """One activity of one device. The events of one thread do not overlap; a picture has a row for each thread."""

    lane: str
    threads: List[List[Mapping[str, Any]]]

    @property
    def height(self) -> int:
        return min(_MOST, max(_LINE, 5 * len(self.threads)))


def picture(trace: Mapping[str, Any]) -> str:
    """Return the SVG of a trace: each device is a block of lines, and time runs from left to right."""
    blocks = _blocks(trace["traceEvents"])
    lasting = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    whole_us = max([event["ts"] + event["dur"] for event in lasting], default=1)
    height = _TOP + _FOOT + sum(10 + sum(line.height + 2 for line in lines) for _, lines in blocks)
    about = trace["otherData"]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="10">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{_LEFT}" y="20" font-size="13">step {about["step"]} of {escape(about["task"])}</text>',
        *_axis(whole_us, height),
        *_draw(blocks, (_WIDTH - _LEFT - _RIGHT) / whole_us),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _blocks(events: List[Mapping[str, Any]]) -> List[Tuple[str, List[Line]]]:
    """Return the devices in the order of the trace, each with its lines."""
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    threads: Dict[int, Dict[str, Dict[int, List[Mapping[str, Any]]]]] = {pid: {} for pid in names}
    for event in events:
        if event["ph"] == "X":
            threads[event["pid"]].setdefault(event["cat"], {}).setdefault(event["tid"], []).append(event)
    return [
        (name, [Line(lane, list(of_lane.values())) for lane, of_lane in threads[pid].items()])
        for pid, name in names.items()
    ]


def _draw(blocks: List[Tuple[str, List[Line]]], per_us: float) -> Iterator[str]:
    """Yield every line with its name; one microsecond is ``per_us`` pixels wide."""
    y = _TOP
    for name, lines in blocks:
        yield f'<line x1="0" x2="{_WIDTH}" y1="{y}" y2="{y}" stroke="#dddddd"/>'
        yield f'<text x="6" y="{y + 13}" font-weight="bold">{escape(name)}</text>'
        y += 4
        for line in lines:
            yield f'<text x="{_LEFT - 6}" y="{y + line.height / 2 + 4:g}" text-anchor="end">{line.lane}</text>'
            thick = line.height / len(line.threads)
            for index, thread in enumerate(line.threads):
                yield from (_box(event, y + index * thick, thick, per_us) for event in thread)
            y += line.height + 2
        y += 6


def _box(event: Mapping[str, Any], y: float, height: float, per_us: float) -> str:
    size = f", {event['args']['bytes']:,} bytes" if "bytes" in event["args"] else ""
    title = escape(f"{event['name']}: {event['dur'] / 1000:g} ms{size}")
    x, width = _LEFT + event["ts"] * per_us, max(_LEAST, event["dur"] * per_us)
    where = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{0.9 * height:.1f}"'
    return f'<rect {where} fill="{_COLOURS[event["cat"]]}"><title>{title}</title></rect>'


def _axis(whole_us: float, height: int) -> Iterator[str]:
    step_us = 10.0
    while whole_us / step_us > _TICKS:
        step_us *= 2.5 if str(step_us)[0] == "2" else 2  # 10, 20, 50, 100 …
    for index in range(int(whole_us / step_us) + 1):
        x = _LEFT + index * step_us * (_WIDTH - _LEFT - _RIGHT) / whole_us
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{height - _FOOT + 4}" stroke="#eeeeee"/>'
        yield f'<text x="{x:.1f}" y="{height - 10}" text-anchor="middle">{index * step_us / 1000:g} ms</text>'
