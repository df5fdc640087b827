"""``launch logs``"""

from typing import Tuple

import click

from launch.errors import SUCCEEDED, CannotStart
from launch.logs import print_logs, select
from launch.verbs.asked import TASKS, Asked, with_hosts_file


@click.command()
@with_hosts_file
@TASKS
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines until the run is over.")
def logs(asked: Asked, patterns: Tuple[str, ...], follow: bool) -> int:
    """Prints the task logs of the newest run. TASK is worker:1, ps:* or a host.

    \b
    Example:  launch logs -f hosts.yaml worker:0 ps:*
    """
    with asked.reach() as fleet:
        problems = print_logs(fleet, select(fleet.spec, patterns), click.echo, follow=follow)
        if problems:
            raise CannotStart(problems)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
