"""``launch status``"""

import json

import click

from launch import display
from launch.errors import SUCCEEDED, UsageError
from launch.onlooker import Onlooker, newest_status
from launch.status.states import ENDED
from launch.status.values import to_values
from launch.verbs.asked import JSON, Asked, say, with_hosts_file


@click.command()
@with_hosts_file
@JSON
@click.option("--watch", "-w", is_flag=True, help="Show every change until the run ends. Ctrl-C leaves the run alone.")
def status(asked: Asked, as_json: bool, watch: bool) -> int:
    """Shows the newest run of FILE: its step, rate and loss, who is slow, and every task's state.

    \b
    Example:  launch status --watch hosts.yaml
    """
    if watch and as_json:
        raise UsageError("--watch: expected no --json, which prints one object and ends; leave one of the two out")
    with asked.reach() as fleet:
        found = newest_status(fleet, str(asked), warn=lambda line: click.echo(line, err=True))
        if watch and found.state not in ENDED:
            with display.for_terminal() as view:
                found = Onlooker(fleet, found, view).follow()
            say(*([f"cause: {found.cause}"] if found.cause else []))
        elif as_json:
            click.echo(json.dumps(to_values(found)))
        else:
            display.print_status(found)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
