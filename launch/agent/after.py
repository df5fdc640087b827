"""The commands of the key ``after``, which run on this host after the run has ended here in an orderly way.

The file ``after.json`` in this host's folder of the run records the errors of failed commands.
"""

import os
import time
from typing import Callable, Mapping, Optional, Sequence

from launch.agent.linux import processes
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.text import last_words

WITHIN_S = 30.0  # for all commands: `down` waits longer before it kills an agent
LONGEST = 200  # characters of a command in a message
_FILE = "after.json"


async def run(
    commands: Sequence[str], folder: RunFolder, secrets: Mapping[str, str], began: Callable[[int], None]
) -> None:
    """Run every command, even after one has failed; log and record the errors, which ``down`` reports.

    All commands together have ``WITHIN_S`` seconds.

    Args:
      began: called with the pid of each command's shell.
    """
    until = time.monotonic() + WITHIN_S
    problems = []
    for command in commands:
        problem = await _problem(command, folder, secrets, began, until - time.monotonic())
        if problem is not None:
            problems.append(f"`{command[:LONGEST]}`: {problem}")
            say(f"after: {problems[-1]}")
    if commands:
        folder.note(_FILE, {"problem": "; ".join(problems) or None})


def problem_of(folder: RunFolder) -> Optional[str]:
    """Return the errors of the commands after a run as one text; None where no command has failed."""
    problem = (folder.read_whole(_FILE) or {}).get("problem")
    return problem if isinstance(problem, str) else None


async def _problem(
    command: str, folder: RunFolder, secrets: Mapping[str, str], began: Callable[[int], None], within_s: float
) -> Optional[str]:
    """Run a command, and return its error, if any."""
    from launch.agent.linux import program  # of the agent alone: it loads asyncio, which ``problem_of`` does not need

    if within_s <= 0:
        return f"not started: the {WITHIN_S:.0f} s for all commands were over"
    env = {**os.environ, "LAUNCH_RUN": folder.run, **secrets}
    try:
        ended = await program.run(("/bin/sh", "-c", command), env, folder.own, within_s, began=began)
    except OSError as error:
        return f"cannot be started: {os.strerror(error.errno or 0)}"
    if ended.code == 0:
        return None
    line = last_words(ended.printed, secrets.values())
    over = f"killed: the {WITHIN_S:.0f} s for all commands were over"
    how = over if ended.code is None else processes.describe_exit(ended.code)
    return f"{how}; {line}" if line else how
