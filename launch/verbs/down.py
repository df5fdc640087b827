"""``launch down``"""

import click

from launch.errors import FOUND_WRONG, SUCCEEDED
from launch.target import Target
from launch.teardown import as_values, in_lines, look_and_take_down, refuse_part
from launch.verbs.options import JSON, OF_RUN, tell, with_hosts_file


@click.command()
@with_hosts_file
@JSON
@OF_RUN
def down(target: Target, as_json: bool) -> int:
    """End the newest run of FILE, and report leftovers per host.

    Workers end before ps. With leftovers, the exit code is 4.

    \b
    Example:  launch down hosts.yaml
    """
    with target.reach() as fleet:
        if target.selects:
            refuse_part(fleet)
        left = look_and_take_down(fleet, reason="launch down")
    tell(as_json, as_values(left), in_lines(left))
    return SUCCEEDED if left.clean else FOUND_WRONG
