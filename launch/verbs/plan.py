"""``launch plan``: show the tasks, their hosts and the traffic of a step."""

import sys
from datetime import datetime, timezone
from typing import Optional, Tuple

import click

from launch.errors import SUCCEEDED
from launch.hosts.bundle import launcher_code, with_folder
from launch.logs.task_logs import select
from launch.plan.estimate import outlook
from launch.plan.outlook import shown_tasks, write_json
from launch.plan.plan import make_plan, run_name
from launch.target import Target
from launch.verbs.options import JSON, TASKS, with_hosts_file
from launch.view.console import say

NIC = click.FloatRange(min=0, min_open=True)


@click.command()
@with_hosts_file
@TASKS
@JSON
@click.option(
    "--nic-gbps", type=NIC, default=10.0, show_default=True, help="Speed of a host's network card, in Gbit/s."
)
@click.option("--python", help="Python on this machine with the job's TensorFlow; default: the launcher's own.")
def plan(target: Target, patterns: Tuple[str, ...], as_json: bool, nic_gbps: float, python: Optional[str]) -> int:
    """Show the tasks, their hosts and the traffic of a step.

    The command starts nothing, and connects to no host. With TASK (worker:1, ps:* or a host), it shows the
    command and the environment of these tasks.

    \b
    Example:  launch plan hosts.yaml --nic-gbps 25
              launch plan hosts.yaml worker:1
    """
    from launch.plan.text_view import print_overview, whole_task  # launch.cli has loaded it for this verb

    spec = target.spec()
    job = target.job(spec)
    planned = make_plan(spec, job, run_name(spec.name, datetime.now(timezone.utc)), sys.executable)
    with_folder(launcher_code(), job)  # raises for a folder that `up` would refuse
    tasks = shown_tasks(planned, {task.name for task in select(spec.tasks, patterns)})
    if patterns and not as_json:
        for task in tasks:
            say(*whole_task(task))
        return SUCCEEDED
    found, mistake = outlook(planned, job, python or sys.executable, nic_gbps)
    if as_json:
        write_json(found, tasks, sys.stdout.write)
    else:
        print_overview(planned, found, str(target))
    if mistake is not None:
        raise mistake
    return SUCCEEDED
