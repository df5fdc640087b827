"""``launch up``: start a run, and follow it."""

from typing import List

import click

from launch.errors import UsageError
from launch.run.draft import RunStart
from launch.run.lifecycle import train_with_failover
from launch.run.resume import refuse_resume
from launch.signals import Interrupts
from launch.status.run import RunStatus
from launch.target import Target
from launch.verbs.options import with_hosts_file
from launch.view import run_end


@click.command()
@with_hosts_file
@click.option("-d", "--detach", is_flag=True, help="Return once every task is up; the run continues.")
@click.option("--resume", is_flag=True, help="Continue from the newest checkpoint on the hosts of FILE.")
@click.option("--run", metavar="NAME", help="With --resume: continue from this run; `launch runs` lists the names.")
def up(target: Target, detach: bool, resume: bool) -> int:
    """Train FILE, with a live view; the exit code is the run's.

    The command ships the code, starts every task, shows the progress until the run ends, and takes the run down.
    Ctrl-C stops the run cleanly; a second Ctrl-C kills the run.

    \b
    Example:  launch up hosts.yaml --set train.steps=100
    """
    if target.run is not None and not resume:
        raise UsageError(
            "--run: expected --resume together with --run, found no --resume; a new run gets a name of its own"
        )
    return train(target, detach, resume)


def train(target: Target, detach: bool, resume: bool = False) -> int:
    """Start a run, follow it unless it is detached, and return its exit code."""

    def ending(status: RunStatus) -> List[str]:
        return run_end.ending(status, target.as_started, bool(target.local))

    spec = target.spec()
    if resume:
        refuse_resume(spec, target.run)
    with Interrupts() as interrupts:
        start = RunStart(spec, resume=resume, source=target.run, detach=detach)
        return train_with_failover(target, start, interrupts, ending).code
