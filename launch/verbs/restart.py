"""``launch restart``"""

from typing import Tuple

import click

from launch import completion
from launch.errors import FAILED, SUCCEEDED, UsageError
from launch.logs import select
from launch.onlooker import newest_status
from launch.restart import follow, losses, refusals
from launch.verbs.asked import Asked, say, with_hosts_file

UP_S = 300.0  # importing TensorFlow on a busy host, finding the others, the first step
LOOK_S = 0.5


@click.command()
@with_hosts_file
@click.argument("patterns", metavar="TASK...", nargs=-1, required=True, shell_complete=completion.tasks)
def restart(asked: Asked, patterns: Tuple[str, ...]) -> int:
    """Ends tasks of a run and starts them anew in place, while the others wait or go on.

    TASK is worker:1, ps:* or a host. Comes back when they are up again. It counts in the task's
    restarts, not against restart.max. A worker loses nothing; a ps loses its variables, so that
    training goes back to the last checkpoint, or the beginning if there is none.

    \b
    Example:  launch restart hosts.yaml worker:1
    """
    with asked.reach() as fleet:
        names = [task.name for task in select(fleet.spec, patterns)]
        before = newest_status(fleet, str(asked))
        wrong = refusals(before, names, str(asked))
        if wrong:
            raise UsageError("\n".join(wrong))
        say(*losses(before, names))
        fleet.ask_lead("restart", tasks=names)
        found = follow(
            before, names, lambda: newest_status(fleet, str(asked)), UP_S, lambda: fleet.interrupts.wait(LOOK_S),
            str(asked),
        )  # fmt: skip
    say(*(f"{name} is up again" for name in found.up), *found.problems)
    return FAILED if found.problems else SUCCEEDED
