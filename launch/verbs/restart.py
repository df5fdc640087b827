"""``launch restart``"""

from typing import Tuple

import click

from launch.agent.wire.verb_requests import RestartRequest
from launch.errors import FAILED, SUCCEEDED, UsageError
from launch.logs.reader import select
from launch.run.observer import newest_status
from launch.run.restart import follow, losses, refusals
from launch.target import Target
from launch.verbs import shell_completion
from launch.verbs.options import OF_RUN, with_hosts_file
from launch.view.console import say

UP_S = 300.0  # importing TensorFlow on a busy host, finding the others, the first step
LOOK_S = 0.5


@click.command()
@with_hosts_file
@click.argument("patterns", metavar="TASK...", nargs=-1, required=True, shell_complete=shell_completion.tasks)
@OF_RUN
def restart(target: Target, patterns: Tuple[str, ...]) -> int:
    """Restart tasks of a run in place.

    TASK is worker:1, ps:* or a host. The command returns when the tasks are up again. It counts in
    the task's restarts, not against restart.max. A worker loses nothing. A ps loses its variables:
    training goes back to the last checkpoint, or to step 0 without one.

    \b
    Example:  launch restart hosts.yaml worker:1
    """
    with target.reach() as fleet:
        before = newest_status(fleet, str(target))
        names = [task.name for task in select(fleet.tasks, patterns)]
        wrong = refusals(before, names, str(target))
        if wrong:
            raise UsageError("\n".join(wrong))
        say(*losses(before, names))
        fleet.ask_lead("restart", RestartRequest(fleet.reference(fleet.lead), tuple(names)))
        found = follow(
            before, names, lambda: newest_status(fleet, str(target)), UP_S, lambda: fleet.interrupts.wait(LOOK_S),
            str(target),
        )  # fmt: skip
    say(*(f"{name} is up again" for name in found.up), *found.problems)
    return FAILED if found.problems else SUCCEEDED
