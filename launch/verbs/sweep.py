"""``launch sweep``"""

import click

from launch.errors import FOUND_WRONG, SUCCEEDED
from launch.sweep import as_values, look_for_leftovers, told
from launch.verbs.asked import JSON, Asked, tell, with_hosts_file


@click.command()
@with_hosts_file
@JSON
@click.option("--kill", is_flag=True, help="End and remove what is found.")
def sweep(asked: Asked, as_json: bool, kill: bool) -> int:
    """Finds what earlier runs, of whatever name, left on the hosts of FILE. Runs that live are left alone.

    Without --kill it signals and removes nothing. Logs and checkpoints always stay.

    \b
    Example:  launch sweep hosts.yaml --kill
    """
    with asked.reach_hosts() as fleet:
        swept = look_for_leftovers(fleet, kill)
    found = not kill and any(report["left"] for report in swept.reports.values())
    advice = [f"end it with `launch sweep {asked} --kill`"] if found else []
    tell(as_json, as_values(swept), [*told(swept), *advice])
    return SUCCEEDED if swept.clean else FOUND_WRONG
