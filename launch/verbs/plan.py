"""``launch plan``"""

import json
import sys
from datetime import datetime

import click

from launch import display
from launch.errors import SUCCEEDED
from launch.placement import describe
from launch.plan import make_plan, run_name, shown
from launch.ship import launcher_code, with_folder
from launch.verbs.asked import JSON, Asked, with_hosts_file

NIC = click.FloatRange(min=0, min_open=True)


@click.command()
@with_hosts_file
@JSON
@click.option("--nic-gbps", type=NIC, default=10.0, help="Speed of a host's network card.")
def plan(asked: Asked, as_json: bool, nic_gbps: float) -> int:
    """Shows what would run where, and what a step moves; starts nothing and reaches no host.

    \b
    Example:  launch plan hosts.yaml --nic-gbps 25
    """
    spec = asked.spec()
    job = asked.job(spec)
    planned = make_plan(spec, job, run_name(spec.name, datetime.now()), sys.executable)
    values = shown(planned, with_folder(launcher_code(), job))
    values.update(describe(planned, job, sys.executable, nic_gbps))
    if as_json:
        click.echo(json.dumps(values))
    else:
        display.print_plan(values)
    return SUCCEEDED
