"""``launch logs``"""

from datetime import datetime
from typing import Optional, Tuple

import click

from launch.errors import SUCCEEDED, CannotStart, UsageError
from launch.history.newest import locate
from launch.logs.reader import print_first_cause, print_logs, select
from launch.logs.time_argument import moment
from launch.target import Target
from launch.verbs.options import OF_RUN, TASKS, with_hosts_file


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
    If the run has failed, its first cause comes first.

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
