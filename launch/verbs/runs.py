"""``launch runs``: a row for each run, with the run's problems below the row; with ``--compare``, two runs."""

from typing import Dict, Iterator, List, Optional, Sequence, Tuple

import click

from cluster.protocol.quantity import quantity
from cluster.protocol.typed_json import part_of, to_values
from launch.curve import comparison_page
from launch.curve.comparison import ComparedRun, RunsComparison, lines, result
from launch.errors import SUCCEEDED, CannotStart, UsageError
from launch.fleet import Fleet
from launch.history import Listing, as_values, list_runs, status_of, unknown
from launch.status.run import RunRecord
from launch.target import Target
from launch.verbs.options import JSON, tell, with_hosts_file
from launch.view.console import Column, cut, fold, note, of_duration, table, width
from launch.view.differences import differing, in_words
from launch.view.run_text import ABSENT, amount, elapsed, metric, step_of

INDENT = "  "
WIDTH = 100  # of a comparison outside a terminal


def table_lines(runs: Sequence[RunRecord], width: Optional[int] = None) -> List[str]:
    """Return the table of runs in lines of at most ``width`` characters; None for no limit."""
    head, *rows = table(COLUMNS, runs, width)
    found, own = [head], _own(runs)
    for run, row in zip(runs, rows):
        found.append(row)
        below = [*_trouble(run), *_before(run), *own.get(run.run, [])]
        found += [cut(f"{INDENT}{text}", width) for text in below]
    return found


def _trouble(run: RunRecord) -> Iterator[str]:
    """Yield a line about a run's incidents and its first cause; no line without a problem."""
    parts = [quantity(run.incidents, "incident")] if run.incidents else []
    if run.state is None:
        parts.append(f"state unknown: expected the lead's record on {run.lead or 'its host'}, found none")
    parts += [run.cause] if run.cause else []
    if parts:
        yield "; ".join(parts)


def _before(run: RunRecord) -> Iterator[str]:
    """Yield a line with the run that a run has continued, if there is one."""
    if run.continues is not None:
        yield f"continues {run.continues} from its checkpoint of step {run.began_at}"


def _own(runs: Sequence[RunRecord]) -> Dict[str, List[str]]:
    """Return, for each run, a line with the arguments that differ among the runs of its name, where any do."""
    of_names: Dict[str, List[RunRecord]] = {}
    for run in runs:
        if run.lead is not None:
            of_names.setdefault(run.name, []).append(run)
    found = {}
    for of_name in of_names.values():
        values = differing(of_name)
        for place, run in enumerate(of_name if values else []):
            found[run.run] = [", ".join(f"{name} {in_words(each[place])}" for name, each in values.items())]
    return found


def _started(run: RunRecord) -> str:
    return ABSENT if run.started is None else f"{run.started[5:10]} {run.started[11:16]}"


def _took(run: RunRecord) -> str:
    seconds = elapsed(run)
    return ABSENT if seconds is None else of_duration(seconds)


def _result(run: RunRecord) -> str:
    found = result(run)
    return ABSENT if found is None else metric(*found)


def _effective(run: RunRecord) -> str:
    return ABSENT if run.effective_share is None else f"{100 * run.effective_share:.0f} %"


COLUMNS: Sequence[Column[RunRecord, str]] = (
    Column("run", 0, lambda run: run.run),
    Column("state", 1, lambda run: run.state or "unknown"),
    Column("started", 2, _started),
    Column("took", 4, _took, is_number=True),
    Column("steps", 3, lambda run: step_of(run.global_step, run.steps), is_number=True),
    Column("loss", 5, lambda run: amount(run.loss), is_number=True, shown_for=lambda run: run.loss is not None),
    Column("result", 6, _result, shown_for=lambda run: result(run) is not None),
    Column("effective", 8, _effective, is_number=True),
    Column("by", 7, lambda run: run.user or ABSENT, least=6),
)


def compared(fleet: Fleet, found: Listing, names: Sequence[str]) -> List[ComparedRun]:
    """Return the records of two runs with their learning curves.

    Raises:
      UsageError: no host knows a run of one of these names; or the file does not name the host that led such a run.
      CannotStart: no host knows one of the runs, and some hosts did not answer; or the host that led one of the runs is
        out of reach.
    """
    known = {run.run: run for run in found.runs}
    missing = next((name for name in names if name not in known), None)
    if missing is not None and found.problems:
        raise CannotStart(found.problems)
    if missing is not None:
        raise UsageError(unknown(fleet, missing, list(known), "--compare"))
    statuses = [(known[name], status_of(fleet, known[name])) for name in names]
    return [part_of(ComparedRun, run, history=status.history) for run, status in statuses]


def _compare(fleet: Fleet, found: Listing, names: Sequence[str], as_json: bool, as_page: bool) -> None:
    runs = compared(fleet, found, names)
    for problem in found.problems:
        note(str(problem))
    if as_page:
        click.echo(comparison_page.document(runs), nl=False)
    else:
        tell(as_json, to_values(RunsComparison(runs, differing(runs))), lines(runs, width() or WIDTH))


@click.command()
@with_hosts_file
@click.option("--compare", metavar="A B", nargs=2, help="Compare two runs: curves, results, arguments that differ.")
@click.option("--page", "as_page", is_flag=True, help="With --compare: print one HTML file.")
@JSON
def runs(target: Target, compare: Optional[Tuple[str, str]], as_page: bool, as_json: bool) -> int:
    """List every run on the hosts of FILE, of any name, newest first.

    A row has the run's state, start, duration, steps and last loss, the metric that train.best names, and the user
    who started the run. Below the row are the number of incidents, the first cause, and the arguments
    that differ from other runs of the name. Times are in UTC, by the clock of the host that led the run. If hosts
    cannot be asked, the command names them, and the exit code is 3. --compare draws the losses of two runs in one
    picture.

    \b
    Example:  launch runs hosts.yaml
              launch runs hosts.yaml --compare digits-20261120-155902 digits-20261121-100210
    """
    if as_page and (not compare or as_json):
        raise UsageError("--page: expected --compare and no --json; write the page with `--compare A B --page > FILE`")
    with target.reach_hosts() as fleet:
        found = list_runs(fleet)
        if compare:
            _compare(fleet, found, compare, as_json, as_page)
            return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
        none = [] if found.runs else [f"no run has been on {fold(fleet.hosts)}"]
        tell(as_json, as_values(found, list(fleet.hosts)), none or table_lines(found.runs, width()))
        if found.problems:
            raise CannotStart(found.problems)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
