"""``launch logs``; ``--since`` and ``--until`` take times as a person writes them."""

import re
from datetime import datetime, timedelta
from typing import Optional, Tuple

import click

from launch.errors import SUCCEEDED, CannotStart, UsageError
from launch.history import locate
from launch.logs.task_logs import print_first_cause, print_logs, select
from launch.target import Target
from launch.verbs.options import OF_RUN, TASKS, with_hosts_file

_AGO = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str, now: datetime) -> float:
    """Return a time as seconds since 1970; without a zone, the time is local.

    The text is ``10m`` (ago), ``15:59`` (today) or ``2026-11-20T15:59:02``.

    Raises:
      UsageError: the text has none of these forms.
    """
    ago = _AGO.fullmatch(text)
    if ago:
        # From the timestamp: subtracting from a datetime loses which of autumn's two equal hours was meant.
        return now.timestamp() - timedelta(**{_UNITS[ago.group(2)]: float(ago.group(1))}).total_seconds()
    try:
        return _written(text, now).timestamp()
    except ValueError:
        raise UsageError(
            f"TIME: expected 30s, 10m, 2h or 1d (ago), 15:59 (today) or 2026-11-20T15:59:02, found {text!r}"
        ) from None


def _written(text: str, now: datetime) -> datetime:
    if re.fullmatch(r"\d\d?:\d\d(:\d\d)?", text):
        return datetime.fromisoformat(f"{now:%Y-%m-%d} {text if text[1] != ':' else '0' + text}")
    return datetime.fromisoformat(text)


@click.command()
@with_hosts_file
@TASKS
@OF_RUN
@click.option("-f", "--follow", is_flag=True, help="Print new lines until the run is over.")
@click.option("--since", metavar="TIME", help="Print only lines from TIME on: 10m (ago), 15:59, 2026-11-20T15:59:02.")
@click.option("--until", metavar="TIME", help="Print only lines before TIME.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Print only the last N lines of each task.")
@click.option("--times", is_flag=True, help="Print the time of day before each line.")
@click.option("--raw", is_flag=True, help="Print every task's line, also where many tasks print the same.")
def logs(
    target: Target,
    patterns: Tuple[str, ...],
    follow: bool,
    since: Optional[str],
    until: Optional[str],
    tail: Optional[int],
    times: bool,
    raw: bool,
) -> int:
    """Print the task logs of the newest run, sorted by time.

    TASK is worker:1, ps:* or a host. Equal lines of many tasks become one line with a count.
    If the run has failed, the first lines are about the first cause of the failure.

    \b
    Example:  launch logs hosts.yaml worker:* gpu02 --since 10m
    """
    if follow and until is not None:
        raise UsageError("--until: expected no --follow, found both; leave one of the two out")
    now = datetime.now()
    span = {key: moment(text, now) for key, text in (("since", since), ("until", until)) if text is not None}
    with target.reach() as fleet:
        if fleet.run is not None:
            locate(fleet)
        tasks = select(fleet.tasks, patterns)
        if not (follow or raw or span):
            print_first_cause(fleet, tasks, click.echo)
        problems = print_logs(fleet, tasks, click.echo, follow=follow, raw=raw, times=times, tail=tail, **span)
        if problems:
            raise CannotStart(problems)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
