"""``launch verify``"""

import click

from launch.errors import FAILED, SUCCEEDED
from launch.run import verification
from launch.run.draft import RunStart
from launch.run.lifecycle import train
from launch.signals import Interrupts
from launch.target import Target
from launch.verbs.options import with_hosts_file


@click.command()
@with_hosts_file
@click.option(
    "--steps", type=click.IntRange(min=1), default=100, show_default=True,
    help="How many steps to compare; never more than train.steps.",
)  # fmt: skip
def verify(target: Target, steps: int) -> int:
    """Trains as ``up`` does, and compares each step with one process on the same batches, to the bit.

    Exit code 0: every variable was equal after every step. Otherwise 1, with the first step and variable
    that differ. It computes on CPUs, restarts nothing, and reads and writes no checkpoint.

    \b
    Example:  launch verify hosts.yaml --steps 20
    """
    spec = verification.prepared(target.spec(), steps)
    with Interrupts() as interrupts:
        ended = train(target, RunStart(spec), interrupts, verification.ending)
    return FAILED if ended.code == SUCCEEDED and not verification.is_equal(ended.status) else ended.code
