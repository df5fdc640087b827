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
    help="Number of steps to compare, at most train.steps.",
)  # fmt: skip
def verify(target: Target, steps: int) -> int:
    """Train, and compare each step with one process, bit by bit.

    All train on the same batches. One process is equal bit by bit; the author's functions in
    plain TensorFlow, with the whole batch, are equal but for rounding. Exit code 0: every variable
    was equal after every step. Exit code 1: the report names the first step and variable that
    differ, and what that looks like. Tasks compute on CPUs, never restart, and neither read nor
    write a checkpoint.

    \b
    Example:  launch verify hosts.yaml --steps 20
    """
    spec = verification.prepared(target.spec(), steps)
    with Interrupts() as interrupts:
        ended = train(target, RunStart(spec), interrupts, verification.ending)
    return FAILED if ended.code == SUCCEEDED and not verification.is_equal(ended.status) else ended.code
