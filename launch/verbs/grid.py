"""``launch grid``: train once for each combination of values."""

import re
import sys
from contextlib import contextmanager
from dataclasses import replace
from shlex import quote
from typing import Callable, Dict, Iterator, Sequence, Tuple

import click

from cluster.protocol.typed_json import to_values
from launch.errors import FAILED, SUCCEEDED, UsageError
from launch.grid.points import GridPoint, GridReport, axes, lines, overrides, points
from launch.grid.record import GridFolder
from launch.grid.running import Grid
from launch.hosts.bundle import JobCode
from launch.signals import Interrupts
from launch.target import Target
from launch.verbs.options import JSON, complete_override, tell, with_hosts_file
from launch.view.console import make_console, note, width

MOST_AT_ONCE = 64
Show = Callable[[GridReport], None]
_PREDICT = re.compile(r"^(def predict\b|predict *=|from .* import .*\bpredict\b)", re.MULTILINE)
_OF_RUN = ("args", "name", "train")  # keys whose values `launch export` takes from the run, or does not need


@click.command()
@with_hosts_file
@JSON
@click.option(
    "--grid", "options", metavar="KEY=VALUE,…", multiple=True, required=True, shell_complete=complete_override,
    help="Train with each of these values: args.hidden=64,128. Several options: every combination.",
)  # fmt: skip
@click.option(
    "--at-once", metavar="N", type=click.IntRange(1, MOST_AT_ONCE), default=1, show_default=True,
    help="Train N points at a time, as far as the ports and GPUs of the hosts allow.",
)  # fmt: skip
@click.option("--fresh", is_flag=True, help="Begin with the first point again; forget the results.")
def grid(target: Target, as_json: bool, options: Tuple[str, ...], at_once: int, fresh: bool) -> int:
    """Train once for each combination of values; name the best.

    Each combination is a point. Points are compared by the metric of train.best, else by the final loss. Ctrl-C stops
    the runs cleanly; the same command then continues with the points that have no result, and with those that failed.
    The exit code is 1 if a point has failed.

    \b
    Example:  launch grid hosts.yaml --grid args.learning_rate=0.1,0.3 --grid args.hidden=64,128
    """
    found = axes(options)
    twice = {axis.key for axis in found} & {text.partition("=")[0] for text in target.overrides}
    if twice:
        raise UsageError(f"--grid {min(twice)}: expected no --set of the same key, found one; leave one of the two out")
    of_points = overrides(found)
    # Reads the file for every point: a wrong value is refused before a point starts.
    specs = [replace(target, overrides=(*target.overrides, *each)).of_file() for each in of_points]
    jobs = {job: target.job(each) for job, each in {each.job: each for each in specs}.items()}
    spec = target.of_file()
    folder = GridFolder(target, spec, options, list(jobs.values()))
    with folder.held(), Interrupts() as interrupts:
        planned = points(spec.name, found)
        begun = planned if fresh else folder.begun(planned)
        with _shown(as_json, begun) as show:
            runs = Grid(
                target, of_points, spec=spec, folder=folder, points=begun, interrupts=interrupts,
                show=show, say=note,
            )  # fmt: skip
            outcome = runs.train(at_once)
    best = next((place for place, point in enumerate(outcome.points) if point.name == outcome.best), None)
    shown = lines(outcome, width())
    if best is not None and _predicts(jobs[outcome.points[best].set.get("job", spec.job)]):
        shown.append(_export(target, outcome.points[best], of_points[best]))
    tell(as_json, to_values(outcome), shown)
    if interrupts.received:
        done = sum(point.is_finished for point in outcome.points)
        note(f"{done} of {len(outcome.points)} points are finished; continue with {_command(target, options, at_once)}")
    elif runs.is_halted:
        again = f"continue with {_command(target, options, at_once)}; after a change of the code, add --fresh"
        note(f"no further point begins, because every point so far failed before its first step; {again}")
    failed = any(point.state == "failed" for point in outcome.points)
    return interrupts.exit_code(otherwise=FAILED if failed else SUCCEEDED)


def _command(target: Target, options: Sequence[str], at_once: int) -> str:
    """Return the command of the grid, as a user types it."""
    words = [word for option in options for word in ("--grid", option)]
    words += [word for text in target.overrides for word in ("--set", text)]
    words += ["--at-once", str(at_once)] if at_once > 1 else []
    return f"`launch grid {target} {' '.join(map(quote, words))}`"


def _predicts(job: JobCode) -> bool:
    """Return whether the job's own file has a function ``predict``, by the text of that file."""
    file = job.entry if job.entry.endswith(".py") else f"{job.entry.replace('.', '/')}.py"
    try:
        return job.folder is not None and _PREDICT.search((job.folder / file).read_text(errors="replace")) is not None
    except OSError:
        return False


def _export(target: Target, best: GridPoint, values: Sequence[str]) -> str:
    """Return a line with the command that exports the best point, as a user types it."""
    own = [text for text in (*target.overrides, *values) if re.split(r"[.\[=]", text)[0] not in _OF_RUN]
    words = ["--run", str(best.run), *(word for text in own for word in ("--set", text))]
    return f"export it with `launch export {target} ~/{best.name} {' '.join(map(quote, words))}`"


@contextmanager
def _shown(as_json: bool, begun: Sequence[GridPoint]) -> Iterator[Show]:
    """Yield a function that shows the points: a table in a terminal, else a line for each change of a state."""
    from rich.live import Live  # launch.cli has loaded both; the Tab key does not need them
    from rich.text import Text

    if as_json or not sys.stdout.isatty():
        states = {point.name: point.state for point in begun}
        yield lambda report: _note_changes(report, states)
        return
    with Live(console=make_console(), refresh_per_second=2, transient=True) as live:
        yield lambda report: live.update(Text("\n".join(lines(report, width()))))


def _note_changes(report: GridReport, states: Dict[str, str]) -> None:
    for point in report.points:
        if states[point.name] != point.state:
            cause = f": {point.cause}" if point.cause else ""
            note(f"{point.name} {point.state}{cause}")
        states[point.name] = point.state
