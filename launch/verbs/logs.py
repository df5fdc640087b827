"""``launch logs``"""

from datetime import datetime
from typing import Optional, Tuple

import click

from launch.errors import SUCCEEDED, CannotStart, UsageError
from launch.logs.reader import print_first_cause, print_logs, select
from launch.logs.time_argument import moment
from launch.target import Target
from launch.verbs.options import TASKS, with_hosts_file


@click.command()
@with_hosts_file
@TASKS
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until the run is over.")
@click.option("--since", metavar="TIME", help="Only lines from then on: 10m (ago), 15:59, 2026-11-20T15:59:02.")
@click.option("--until", metavar="TIME", help="Only lines from before then.")
@click.option("--tail", type=click.IntRange(min=0), metavar="N", help="Only the last N lines of each task.")
@click.option("--times", is_flag=True, help="The time of day in front of each line.")
@click.option("--raw", is_flag=True, help="A line of each task: equal lines of many are not folded into one.")
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
    """Prints the task logs of the newest run by time. TASK is worker:1, ps:* or a host.

    Equal lines of many tasks are one line with a count. Of a run that has failed the first
    cause comes first.

    \b
    Example:  launch logs hosts.yaml worker:* gpu02 --since 10m
    """
    if follow and until is not None:
        raise UsageError("--until: expected no --follow, which goes on with what comes; leave one of the two out")
    now = datetime.now()
    span = {key: moment(text, now) for key, text in (("since", since), ("until", until)) if text is not None}
    with target.reach() as fleet:
        tasks = select(fleet.spec, patterns)
        if not (follow or raw or span):
            print_first_cause(fleet, tasks, click.echo)
        problems = print_logs(fleet, tasks, click.echo, follow=follow, raw=raw, times=times, tail=tail, **span)
        if problems:
            raise CannotStart(problems)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
