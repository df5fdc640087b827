"""``launch status``"""

import json

import click

from launch import display
from launch.errors import SUCCEEDED, CannotStart, UsageError
from launch.verbs.asked import JSON, Asked, with_hosts_file

ANSWER_S = 30.0


@click.command()
@with_hosts_file
@JSON
def status(asked: Asked, as_json: bool) -> int:
    """Shows the newest run of FILE: its step, rate and loss, and every task's state.

    \b
    Example:  launch status hosts.yaml
    """
    with asked.reach() as fleet:
        lead = next(iter(fleet.hosts))
        answers, problems = fleet.ask("status", {lead: fleet.request(lead)}, ANSWER_S)
        if problems:
            raise CannotStart(problems)
    found = answers[lead]["status"]
    if found is None:
        raise UsageError(
            f"{asked.file}: no run of this name has been on {lead}; start one with `launch up {asked.file}`"
        )
    if as_json:
        click.echo(json.dumps(found))
    else:
        display.print_status(found)
    return SUCCEEDED
