"""``launch status``"""

import json

import click

from launch.errors import SUCCEEDED, UsageError
from launch.history import newest_status
from launch.run.follower import Follower
from launch.status.run import ENDED
from launch.status.values import to_values
from launch.target import Target
from launch.verbs.options import JSON, OF_RUN, with_hosts_file
from launch.view.console import note, say


@click.command()
@with_hosts_file
@JSON
@OF_RUN
@click.option(
    "--watch", "-w", is_flag=True, help="Show every change until the run ends. Ctrl-C ends only this command."
)
@click.option("--wide", is_flag=True, help="Every task and every column, however long a line becomes.")
def status(target: Target, as_json: bool, watch: bool, wide: bool) -> int:
    """Show the newest run: step, rate, loss, every task's state.

    The table marks slow workers.

    \b
    Example:  launch status --watch hosts.yaml
    """
    from launch.view import live_view  # launch.cli has loaded it; the Tab key does not need it

    if watch and as_json:
        raise UsageError("--watch: expected no --json, found both; leave one of the two out")
    with target.reach() as fleet:
        found = newest_status(fleet, str(target), warn=note)
        if watch and found.state not in ENDED:
            with live_view.for_terminal() as view:
                found = Follower(fleet, found, view).follow()
            say(*([f"cause: {found.cause}"] if found.cause else []))
        elif as_json:
            click.echo(json.dumps(to_values(found)))
        else:
            live_view.print_status(found, wide)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
