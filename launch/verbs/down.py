"""``launch down``"""

import click

from launch.down import as_values, look_and_take_down, told
from launch.errors import FOUND_WRONG, SUCCEEDED
from launch.verbs.asked import JSON, Asked, tell, with_hosts_file
from launch.whole_run import refuse_part


@click.command()
@with_hosts_file
@JSON
def down(asked: Asked, as_json: bool) -> int:
    """Ends the newest run of FILE, workers before ps, and tells per host what is left.

    \b
    Example:  launch down hosts.yaml
    """
    with asked.reach() as fleet:
        if asked.selects:
            refuse_part(fleet)
        left = look_and_take_down(fleet, reason="launch down")
    tell(as_json, as_values(left), told(left))
    return SUCCEEDED if left.clean else FOUND_WRONG
