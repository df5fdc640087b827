"""``launch report``"""

from typing import Tuple

import click

from launch.errors import SUCCEEDED
from launch.history import newest_status
from launch.logs.last_lines import chosen, last_lines
from launch.monitoring.newest_state import newest_steps
from launch.page.run_page import document, facts
from launch.target import Target
from launch.verbs.options import OF_RUN, TASKS, with_hosts_file
from launch.view.console import note


@click.command()
@with_hosts_file
@TASKS
@OF_RUN
def report(target: Target, patterns: Tuple[str, ...]) -> int:
    """Print a page about the newest run: one HTML file.

    The file needs no network and can be mailed. The page has the run's tasks, incidents, checkpoints and result, and
    the newest steps and last lines of logs: those of TASK (worker:1, ps:* or a host), by default of at most 32 tasks.

    \b
    Example:  launch report hosts.yaml > run.html
    """
    with target.reach() as fleet:
        status = newest_status(fleet, str(target), warn=note)
        tasks = chosen(fleet, patterns)
        logs = last_lines(fleet, tasks)
        steps, silent = newest_steps(fleet, tasks, status)
        for line in dict.fromkeys([*logs["missing"], *map(str, silent)]):
            note(line)
        fleet.interrupts.check()
        click.echo(document(facts(status), logs, steps=steps), nl=False)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
