"""``launch up``"""

import time
from typing import List, Optional

import click

from launch import report
from launch.attended import attend
from launch.interrupts import Interrupts
from launch.resume import refuse_resume
from launch.status.run import RunStatus
from launch.succession import Beginning
from launch.verbs.asked import Asked, with_hosts_file


@click.command()
@with_hosts_file
@click.option("-d", "--detach", is_flag=True, help="Return once every task is up; the run goes on.")
@click.option("--resume", is_flag=True, help="Go on from the newest checkpoint that a host of FILE holds.")
def up(asked: Asked, detach: bool, resume: bool) -> int:
    """Trains what FILE describes; the exit code is the run's.

    Ships the code, starts every task, shows progress, waits, tears down. Ctrl-C stops the
    run in order, a second one kills it.

    \b
    Example:  launch up hosts.yaml --set train.steps=100
    """
    began = time.monotonic()

    def ending(status: RunStatus) -> List[str]:
        return report.ending(status, time.monotonic() - began)

    spec = asked.spec()
    if resume:
        refuse_resume(spec)
    follows: Optional[Beginning] = Beginning(spec, resume)
    with Interrupts() as interrupts:
        while follows is not None:
            ended = attend(asked, follows, interrupts, ending, detach)
            follows = ended.follows
    return ended.code
