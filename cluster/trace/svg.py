"""A trace as a picture: every device a block of lines, time from left to right, in SVG."""

from html import escape
from typing import Any, Dict, Iterator, List, Mapping, NamedTuple, Tuple

_COLOURS = {
    "step": "#8c8c8c",
    "pulls": "#3b75af",
    "compute": "#519e3e",
    "pushes": "#ef8636",
    "waiting": "#cfcfcf",
    "other transfers": "#c53a32",
}
_WIDTH, _LEFT, _RIGHT, _TOP, _FOOT = 960, 150, 20, 34, 30  # of the drawing, and its margins, in pixels
_LINE, _MOST = 12, 60  # pixels of a line, and of one in which much lasts at the same time
_LEAST = 0.5  # pixels of what lasted next to nothing
_TICKS = 10  # at most


class Line(NamedTuple):
    """One kind of thing on one device; the events of a thread follow each other, threads lie above each other."""

    lane: str
    threads: List[List[Mapping[str, Any]]]

    @property
    def height(self) -> int:
        return min(_MOST, max(_LINE, 5 * len(self.threads)))


def picture(trace: Mapping[str, Any]) -> str:
    """Return the SVG of what ``chrome.trace`` made."""
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
    """Return every line with its name; ``per_us`` pixels are a microsecond."""
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
