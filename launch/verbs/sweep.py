"""``launch sweep``"""

import click

from launch.errors import FOUND_WRONG, SUCCEEDED
from launch.target import Target
from launch.teardown.sweep import as_values, in_lines, look_for_leftovers
from launch.verbs.options import JSON, tell, with_hosts_file


@click.command()
@with_hosts_file
@JSON
@click.option("--kill", is_flag=True, help="End the processes and remove the files that were found.")
def sweep(target: Target, as_json: bool, kill: bool) -> int:
    """Find leftovers of earlier runs on the hosts of FILE.

    Earlier runs of any name count; live runs are not touched. Without --kill the command only
    reports. Logs and checkpoints always stay.

    \b
    Example:  launch sweep hosts.yaml --kill
    """
    with target.reach_hosts() as fleet:
        swept = look_for_leftovers(fleet, kill)
    found = not kill and any(answer.left for answer in swept.answers.values())
    advice = [f"end it with `launch sweep {target} --kill`"] if found else []
    tell(as_json, as_values(swept), [*in_lines(swept), *advice])
    return SUCCEEDED if swept.clean else FOUND_WRONG
