"""``launch down``: end a run, and report leftovers."""

from dataclasses import replace
from typing import List

import click

from launch.errors import FOUND_WRONG, SUCCEEDED, LaunchError
from launch.fleet import Fleet
from launch.history import status_in
from launch.target import Target
from launch.teardown import as_values, in_lines, look_and_take_down, refuse_part
from launch.verbs.options import JSON, OF_RUN, tell, with_hosts_file
from launch.view.run_end import saved


@click.command()
@with_hosts_file
@JSON
@OF_RUN
def down(target: Target, as_json: bool) -> int:
    """End the newest run of FILE, and report leftovers per host.

    Workers end before ps. The last line names the newest checkpoint, and the command that
    continues from it. With leftovers, the exit code is 4.

    \b
    Example:  launch down hosts.yaml
    """
    with target.reach() as fleet:
        if target.selects:
            refuse_part(fleet)
        left = look_and_take_down(fleet, reason="launch down")
        lines = in_lines(left) + ([] if as_json or left.problems else saved_lines(fleet, target))
    tell(as_json, as_values(left), lines)
    return SUCCEEDED if left.clean else FOUND_WRONG


def saved_lines(fleet: Fleet, target: Target) -> List[str]:
    """Return a line about the checkpoint of the ended run; empty if the lead does not report a checkpoint."""
    try:
        status = status_in(fleet.lead, fleet.ask_lead("status", fleet.reference(fleet.lead)))
    except LaunchError:  # nothing more is known of a run that is down
        return []
    named = f"--run {fleet.run} " if fleet.run is not None else ""
    asked = f"{named}{replace(target, local=fleet.spec.local)}"
    return [] if status is None else saved(status, asked)
