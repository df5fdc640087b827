"""``launch drain``"""

from typing import Tuple

import click

from launch.agent.wire.verb_requests import DrainRequest
from launch.errors import FAILED, SUCCEEDED, UsageError
from launch.logs.reader import select
from launch.run.drain import follow
from launch.run.observer import newest_status
from launch.target import Target
from launch.verbs import shell_completion
from launch.verbs.options import OF_RUN, with_hosts_file
from launch.view.console import say

TRAINS_S = 300.0  # loading TensorFlow on a busy host, a save, the first step
LOOK_S = 0.2


@click.command()
@with_hosts_file
@click.argument("patterns", metavar="TASK...", nargs=-1, required=True, shell_complete=shell_completion.tasks)
@OF_RUN
@click.option("--back", is_flag=True, help="Let these tasks train again; a spare, for the first time.")
def drain(target: Target, patterns: Tuple[str, ...], back: bool) -> int:
    """Take tasks out of a run that trains, or back.

    TASK is ps:1, worker:2 or a host. The run needs the key elastic. New processes load while
    the old ones train. Then the chief saves, and training goes on from that very step, with
    the variables on the ps that are left. The command returns when it does.

    \b
    Example:  launch drain hosts.yaml cpu02
              launch drain hosts.yaml --back cpu02
    """
    with target.reach() as fleet:
        before = newest_status(fleet, str(target))
        names = [task.name for task in select(fleet.tasks, patterns)]
        answer = fleet.ask_lead("drain", DrainRequest(fleet.reference(fleet.lead), tuple(names), back))
        if answer["wrong"]:
            raise UsageError("\n".join(f"{before.run}: {each}" for each in answer["wrong"]))
        found = follow(
            before.run, lambda: newest_status(fleet, str(target)), TRAINS_S, lambda: fleet.interrupts.wait(LOOK_S)
        )
    say(found.line)
    return SUCCEEDED if found.trains else FAILED
