"""Frames of a screen as one SVG file, animated by CSS: it needs no script and nothing from elsewhere.

Equal rows are drawn once, and used by every frame that shows them. The animation begins with the last frame, which a
reader that does not animate shows, too.
"""

import itertools
from typing import Dict, List, NamedTuple, Sequence, Tuple
from xml.sax.saxutils import escape

from tests.recording.terminal import Cell, Screen, Style

COLUMN, LINE, MARGIN = 8.4, 18, 14  # pixels; a font of 14 has characters 0.6 as wide
REST_S = 5.0  # the last frame stays this long, before the first one comes again
_NORMAL = ["#555555", "#ff6b6b", "#7ee787", "#e3b341", "#79c0ff", "#d2a8ff", "#76e3ea", "#d0d7de"]
_BRIGHT = ["#8b949e", "#ff8e8e", "#9ff0a8", "#f2cc60", "#a5d6ff", "#e2c5ff", "#a6f0f5", "#ffffff"]
COLOURS = {**dict(enumerate(_NORMAL, 30)), **dict(enumerate(_BRIGHT, 90))}


class Frame(NamedTuple):
    """What the screen shows from ``at_s`` seconds on."""

    at_s: float
    screen: Screen


def animation(frames: Sequence[Frame], title: str) -> str:
    """Return the frames as an SVG file."""
    columns, rows = len(frames[0].screen[0]), len(frames[0].screen)
    width, height = columns * COLUMN + 2 * MARGIN, rows * LINE + 2 * MARGIN
    duration = frames[-1].at_s + REST_S
    drawn: Dict[Tuple[Cell, ...], str] = {}
    groups = [_frame(frame, f"f{index}", drawn) for index, frame in enumerate(frames)]
    ends = [frame.at_s for frame in frames[1:]] + [duration]
    moments = [
        _moment(f"f{i}", frame.at_s / duration, end / duration) for i, (frame, end) in enumerate(zip(frames, ends))
    ]
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f"<title>{escape(title)}</title>",
        "<style>",
        "text{font:14px ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#d0d7de;white-space:pre}",
        f"g.f{{visibility:hidden;animation-duration:{duration:.2f}s;animation-iteration-count:infinite;"
        f"animation-timing-function:step-end;animation-delay:-{frames[-1].at_s:.2f}s}}",
        *moments,
        f"#f{len(frames) - 1}{{visibility:visible}}",
        "@media (prefers-reduced-motion){g.f{animation:none!important}}",
        "</style>",
        '<rect width="100%" height="100%" rx="8" fill="#0d1117"/>',
        "<defs>", *(f'<g id="{name}">{_row(row)}</g>' for row, name in drawn.items()), "</defs>",
        *groups,
        "</svg>",
    ]) + "\n"  # fmt: skip


def _frame(frame: Frame, name: str, drawn: Dict[Tuple[Cell, ...], str]) -> str:
    uses: List[str] = []
    for index, row in enumerate(frame.screen):
        if any(cell.text != " " for cell in row):
            known = drawn.setdefault(row, f"r{len(drawn)}")
            uses.append(f'<use href="#{known}" y="{MARGIN + (index + 1) * LINE - 5}"/>')
    return f'<g class="f" id="{name}">{"".join(uses)}</g>'


def _moment(name: str, begin: float, end: float) -> str:
    shown = f"{100 * begin:.3f}%{{visibility:visible}}"
    first = "" if begin == 0 else "0%{visibility:hidden}"
    last = "" if end >= 1 else f"{100 * end:.3f}%{{visibility:hidden}}"
    return f"#{name}{{animation-name:{name}}}@keyframes {name}{{{first}{shown}{last}}}"


def _row(row: Tuple[Cell, ...]) -> str:
    """Return a row as text whose pieces stand in their columns, whatever the font."""
    pieces: List[str] = []
    column = 0
    for style, cells in itertools.groupby(row, key=lambda cell: cell.style):
        text = "".join(cell.text for cell in cells)
        if text.strip():
            first = column + len(text) - len(text.lstrip())
            pieces.append(_piece(text.strip(), first, style))
        column += len(text)
    return f"<text>{''.join(pieces)}</text>"


def _piece(text: str, column: int, style: Style) -> str:
    looks = f' fill="{COLOURS[style.colour]}"' if style.colour else ""
    looks += ' font-weight="bold"' if style.bold else ""
    looks += ' opacity="0.65"' if style.dim else ""
    place = f'x="{MARGIN + column * COLUMN:.1f}" textLength="{len(text) * COLUMN:.1f}"'
    return f"<tspan {place}{looks}>{escape(text)}</tspan>"
