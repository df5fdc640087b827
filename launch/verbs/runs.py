"""``launch runs``: a row for each run, with the run's problems below the row."""

from typing import Iterator, List, Optional, Sequence

import click

from cluster.protocol.quantity import quantity
from launch.errors import SUCCEEDED, CannotStart
from launch.history import as_values, list_runs
from launch.status.run import RunRecord
from launch.target import Target
from launch.verbs.options import JSON, tell, with_hosts_file
from launch.view.console import GAP, Column, cut, fitting, fold, of_duration, width
from launch.view.run_text import elapsed

INDENT = "  "


def table_lines(runs: Sequence[RunRecord], width: Optional[int] = None) -> List[str]:
    """Return the table of runs in lines of at most ``width`` characters; None for no limit."""
    cells = [[column.cell(run) for column in COLUMNS] for run in runs]
    natural = [max([len(column.heading), *(len(row[at]) for row in cells)]) for at, column in enumerate(COLUMNS)]
    # The last column has no gap after it.
    given = fitting(COLUMNS, natural, None if width is None else width + GAP)
    found = [_row([column.heading for column in COLUMNS], given)]
    for run, row in zip(runs, cells):
        found.append(_row(row, given))
        found += [cut(f"{INDENT}{text}", width) for text in _trouble(run)]
    return found


def _row(cells: Sequence[str], given: Sequence[int]) -> str:
    shown = [
        cut(text, width).rjust(width) if column.is_number else cut(text, width).ljust(width)
        for column, text, width in zip(COLUMNS, cells, given)
        if width
    ]
    return (" " * GAP).join(shown).rstrip()


def _trouble(run: RunRecord) -> Iterator[str]:
    """Yield a line about a run's incidents and its first cause; no line without a problem."""
    parts = [quantity(run.incidents, "incident")] if run.incidents else []
    if run.state is None:
        parts.append(f"state unknown: expected the lead's record on {run.lead or 'its host'}, found none")
    parts += [run.cause] if run.cause else []
    if parts:
        yield "; ".join(parts)


def _started(run: RunRecord) -> str:
    return "-" if run.started is None else f"{run.started[5:10]} {run.started[11:16]}"


def _took(run: RunRecord) -> str:
    seconds = elapsed(run)
    return "-" if seconds is None else of_duration(seconds)


def _steps(run: RunRecord) -> str:
    if run.global_step is None:
        return "-"
    return f"{run.global_step}/{run.steps}" if run.steps else f"{run.global_step}"


def _effective(run: RunRecord) -> str:
    return "-" if run.effective_share is None else f"{100 * run.effective_share:.0f} %"


COLUMNS: Sequence[Column[RunRecord, str]] = (
    Column("run", 0, lambda run: run.run),
    Column("state", 1, lambda run: run.state or "unknown"),
    Column("started", 2, _started),
    Column("took", 4, _took, is_number=True),
    Column("steps", 3, _steps, is_number=True),
    Column("effective", 6, _effective, is_number=True),
    Column("by", 5, lambda run: run.user or "-", least=6),
)


@click.command()
@with_hosts_file
@JSON
def runs(target: Target, as_json: bool) -> int:
    """List every run on the hosts of FILE, of any name, newest first.

    A row has the run's state, its start and duration, its steps, the share of effective training time where the
    terminal has room for it, and who started it. Below it are the number of incidents and the first cause. Times
    are in UTC, by the clock of the host that led the run. Hosts that cannot be asked are named, and the exit code
    is 3 then.

    \b
    Example:  launch runs hosts.yaml
    """
    with target.reach_hosts() as fleet:
        found = list_runs(fleet)
        none = [] if found.runs else [f"no run has been on {fold(fleet.hosts)}"]
        tell(as_json, as_values(found, list(fleet.hosts)), none or table_lines(found.runs, width()))
        if found.problems:
            raise CannotStart(found.problems)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
