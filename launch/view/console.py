"""Lines for a person on stdout; the columns that fit into a line; hosts folded into ranges; amounts with a unit.

If a line is too short for all columns, the columns of the highest rank are left out first.
"""

import shutil
import sys
import termios
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Callable, Generic, Iterable, Iterator, List, Optional, Sequence, TextIO, TypeVar

import click
from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

from launch.agent.text import without_controls

GAP = 2  # between two columns


Row = TypeVar("Row")
Cell = TypeVar("Cell")


@dataclass(frozen=True)
class Column(Generic[Row, Cell]):
    """A column of a table.

    Attributes:
      heading: the first line of the column.
      rank: of two columns, the column with the higher rank is left out first; a column of rank 0 is never cut.
      cell: returns the content of the column in a row.
      is_number: whether the column is aligned to the right.
      least: the width to which the column may be cut, with an ellipsis in its texts; None for a column that is never
        cut.
      shown_for: returns whether a row needs the column; None for a column that is always shown.
    """

    heading: str
    rank: int
    cell: Callable[[Row], Cell]
    is_number: bool = False
    least: Optional[int] = None
    shown_for: Optional[Callable[[Row], bool]] = None


def fitting(columns: Sequence[Column[Any, Any]], natural: Sequence[int], width: Optional[int]) -> List[int]:
    """Return the width of each column, 0 for a column that does not fit.

    ``natural`` has the width of each column's longest text. Columns of lower rank get their width first.
    """
    if width is None:
        return list(natural)
    given, room = [0] * len(columns), width  # rich also adds a gap after the last column
    for index in sorted(range(len(columns)), key=lambda index: columns[index].rank):
        least = columns[index].least
        needed = natural[index] if least is None else min(least, natural[index])
        if needed + GAP <= room or columns[index].rank == 0:
            given[index] = max(needed, min(natural[index], room - GAP))
            room -= given[index] + GAP
    return given


def needed(columns: Sequence[Column[Row, Cell]], rows: Sequence[Row]) -> List[Column[Row, Cell]]:
    """Return the columns that at least one row needs."""
    return [column for column in columns if column.shown_for is None or any(map(column.shown_for, rows))]


def table(columns: Sequence[Column[Row, str]], rows: Sequence[Row], width: Optional[int] = None) -> List[str]:
    """Return the headings and a line for each row, of at most ``width`` characters; None for no limit.

    A column that no row needs is left out.
    """
    columns = needed(columns, rows)
    cells = [[column.heading for column in columns], *([column.cell(row) for column in columns] for row in rows)]
    natural = [max(len(line[at]) for line in cells) for at in range(len(columns))]
    given = fitting(columns, natural, None if width is None else width + GAP)  # no gap after the last column
    return [_line(columns, line, given) for line in cells]


def _line(columns: Sequence[Column[Any, str]], cells: Sequence[str], given: Sequence[int]) -> str:
    shown = [
        cut(text, width).rjust(width) if column.is_number else cut(text, width).ljust(width)
        for column, text, width in zip(columns, cells, given)
        if width
    ]
    return (" " * GAP).join(shown).rstrip()


def cut(text: str, width: Optional[int]) -> str:
    """Return a text of at most ``width`` characters; a text that is cut ends with an ellipsis."""
    return text if width is None or len(text) <= width else f"{text[: max(0, width - 1)]}…"


WIDE = 400  # characters of a line in which nothing is cut


def say(*lines: str) -> None:
    """Print lines for a person on stdout."""
    for line in lines:
        click.echo(without_controls(line))


def note(*lines: str) -> None:
    """Print lines for a person on stderr, because stdout may have data."""
    for line in lines:
        click.echo(without_controls(line), err=True)


def make_console(wide: bool = False) -> Any:
    """Return rich's console on stdout; outside a terminal, or with ``wide``, it is so wide that nothing is cut."""
    from rich.console import Console  # the callers have loaded rich; most verbs and the Tab key do not need it

    return Console(width=WIDE) if wide or not sys.stdout.isatty() else Console()


def width() -> Optional[int]:
    """Return the number of characters of a line on stdout; None outside a terminal, where nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@contextmanager
def unechoed(terminal: TextIO) -> Iterator[None]:
    """In this block, keep a terminal from printing ``^C`` and ``^Z`` when these keys are pressed."""
    try:
        before = termios.tcgetattr(terminal)
    except (termios.error, ValueError):  # no terminal, or closed
        yield
        return
    quiet = [*before[:3], before[3] & ~termios.ECHOCTL, *before[4:]]
    termios.tcsetattr(terminal, termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def fold(hosts: Iterable[str]) -> str:
    """Return hosts as ranges: ``gpu[01-03,07]``."""
    return str(NodeSet.fromlist(list(hosts), resolver=RESOLVER_NOGROUP))


_BYTES = ("bytes", "kB", "MB", "GB", "TB")
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def of_bytes(number: float) -> str:
    """Return a number of bytes in words, such as ``27.1 MB``; a kB is a thousand bytes."""
    for unit in _BYTES:
        if number < 999.5 or unit == _BYTES[-1]:
            break
        number /= 1000
    return f"{number:.0f} {unit}" if unit == "bytes" else f"{_three(number)} {unit}"


def of_seconds(seconds: float) -> str:
    """Return a short duration in words, such as ``1.35 s`` or ``217 ms``."""
    scale, unit = next(((scale, unit) for scale, unit in _SECONDS if seconds >= 0.9995 * scale), _SECONDS[-1])
    return f"{_three(seconds / scale)} {unit}"


def of_duration(seconds: float) -> str:
    """Return a duration in words, such as ``7.7 s``, ``1:23``, ``2:03:04`` or ``3 d 02:03``."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _three(number: float) -> str:
    decimals = 2 if number < 9.995 else 1 if number < 99.95 else 0
    return f"{number:.{decimals}f}"
