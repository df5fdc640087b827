"""``launch runs``"""

import click

from launch.errors import SUCCEEDED, CannotStart
from launch.history.listing import as_values, list_runs
from launch.history.runs_table import lines
from launch.target import Target
from launch.verbs.options import JSON, tell, with_hosts_file
from launch.view.console import fold, width


@click.command()
@with_hosts_file
@JSON
def runs(target: Target, as_json: bool) -> int:
    """List every run on the hosts of FILE, of any name, newest first.

    A row has the run's state, its start and duration, its steps, the share of effective training time where the
    terminal has room for it, and who started it. Below it are the number of incidents and the first cause. Times
    are in UTC, by the clock of the host that led the run. Hosts that cannot be asked are named, and the exit code
    is 3 then.

    \b
    Example:  launch runs hosts.yaml
    """
    with target.reach_hosts() as fleet:
        found = list_runs(fleet)
        none = [] if found.runs else [f"no run has been on {fold(fleet.hosts)}"]
        tell(as_json, as_values(found, list(fleet.hosts)), none or lines(found.runs, width()))
        if found.problems:
            raise CannotStart(found.problems)
        return fleet.interrupts.exit_code(otherwise=SUCCEEDED)
