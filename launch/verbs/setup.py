"""``launch setup``: build the Python environment on every host."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Optional

import click

from launch.environments.identity import Order
from launch.errors import SUCCEEDED, CannotStart, UsageError
from launch.target import Target
from launch.verbs.options import JSON, tell, with_hosts_file

FOLDER = click.Path(exists=True, file_okay=False)


@click.command()
@with_hosts_file
@JSON
@click.option("--wheels", metavar="DIR", type=FOLDER, help="Send the packages from DIR: the hosts need no internet.")
def setup(target: Target, as_json: bool, wheels: Optional[str]) -> int:
    """Build the Python environment of FILE on every host.

    The key `setup` names the lock file; the tasks then run in this environment. A host whose
    environment is up to date stays as it is.

    \b
    Example:  launch setup hosts.yaml --wheels wheels/
    """
    # launch.cli has loaded them; the Tab key does not need them.
    from launch.environments.builder import as_values, in_lines, set_up
    from launch.view.host_progress import HostProgress

    if target.local:
        raise UsageError(
            "--local: expected the hosts of FILE, found --local, which uses the launcher's own Python; leave it out"
        )
    with replace(target, local=False).reach_hosts() as fleet:
        pythons = {name: host.python for name, host in fleet.hosts.items()}
        order = Order(fleet.spec, pythons, Path(wheels) if wheels else None)
        with HostProgress(list(pythons), sys.stderr if as_json else sys.stdout) as progress:
            outcome = set_up(fleet, order, progress)
    tell(as_json, as_values(order, outcome), in_lines(outcome))
    if outcome.problems:
        raise CannotStart(outcome.problems)
    return SUCCEEDED
