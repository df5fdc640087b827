"""The comparison of two runs as one HTML file, which needs no network and no script."""

import base64
import hashlib
from html import escape
from typing import Iterator, List, Sequence

from launch.curve.comparison import ComparedRun, table
from launch.status.run_history import CurvePoint
from launch.view.robust_scale import Scale, robust_scale

WIDE, HIGH, LEFT, BELOW = 960, 360, 80, 30
STYLE = """
:root { color-scheme: light dark; --one: #1f6feb; --other: #d9730d }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1000px; margin: 24px auto; padding: 0 16px }
svg { width: 100%; height: auto } text { font-size: 12px; fill: currentColor }
.grid { stroke: currentColor; opacity: .2 } path { fill: none; stroke-width: 2 }
path.one { stroke: var(--one) } path.other { stroke: var(--other) }
circle.one { fill: var(--one) } circle.other { fill: var(--other) }
th.one { color: var(--one) } th.other { color: var(--other) }
table { border-collapse: collapse } th, td { text-align: left; padding: 3px 18px 3px 0; overflow-wrap: anywhere }
"""
KINDS = ("one", "other")
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{digest}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body><h1>{title}</h1>
{drawing}
<table>{rows}</table></body></html>
"""


def document(runs: Sequence[ComparedRun]) -> str:
    """Return the HTML page that compares two runs."""
    head, *rest = table(runs)
    names = "".join(f'<th class="{kind}">{escape(name)}</th>' for kind, name in zip(KINDS, head[1:]))
    rows = [f"<tr><th></th>{names}</tr>"]
    rows += [f"<tr><th>{escape(row[0])}</th>{''.join(f'<td>{escape(c)}</td>' for c in row[1:])}</tr>" for row in rest]
    return PAGE.format(
        digest=base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode(),
        title=escape(" and ".join(run.run for run in runs)),
        style=STYLE,
        drawing="".join(_drawing(runs)) or "<p>No curve: neither run has recorded a loss.</p>",
        rows="".join(rows),
    )


def _drawing(runs: Sequence[ComparedRun]) -> Iterator[str]:
    points = [point for run in runs for point in run.history.points]
    if not points:
        return
    first, last = min(point.step for point in points), max(point.step for point in points)
    scale = robust_scale([point.loss for point in points])
    yield f'<svg viewBox="0 0 {WIDE} {HIGH}" role="img" aria-label="loss by step">'
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = _y(share)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDE}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{scale.value(share):.4g}</text>'
    yield f'<text x="{LEFT}" y="{HIGH - 8}">step {first}</text>'
    yield f'<text x="{WIDE}" y="{HIGH - 8}" text-anchor="end">step {last}</text>'
    for kind, run in zip(KINDS, runs):
        places = _places(run.history.points, scale, first, last)
        if len(places) == 1:
            across, down = places[0].split()
            yield f'<circle class="{kind}" cx="{across}" cy="{down}" r="3"/>'
        elif places:
            yield f'<path class="{kind}" d="M{"L".join(places)}"><title>{escape(run.run)}</title></path>'
    yield "</svg>"


def _places(points: Sequence[CurvePoint], scale: Scale, first: int, last: int) -> List[str]:
    across = (WIDE - LEFT) / max(1, last - first)
    return [f"{LEFT + across * (point.step - first):.1f} {_y(scale.share(point.loss))}" for point in points]


def _y(share: float) -> float:
    return round(10 + (HIGH - BELOW - 10) * (1 - share), 1)
