"""The agent's parent, which waits for it and does nothing else, and then ends what it left.

The kernel kills the tasks of an agent that is killed, but not the tasks' children, and nobody
would remove its lock. The keeper does both at once. It opens nothing and listens to nobody, so
what kills an agent (memory, a mistake, an operator's SIGKILL) passes it by.
"""

import os
from typing import Callable

from launch.agent import processes, remains
from launch.agent.agent_log import say
from launch.agent.folder import RunFolder


def kept(folder: RunFolder, serve: Callable[[processes.Process], None], release: Callable[[], None]) -> None:
    """Runs ``serve`` in a child, handing it the keeper, and returns when nothing of the run is left here.

    Args:
      release: closes what only the child is to hold open.
    """
    keeper = processes.inspect(os.getpid())
    agent = os.fork()
    if agent == 0 and keeper is not None:
        serve(keeper)
        return
    release()
    processes.show_as(f"launch keeper of {folder.run} on {folder.host}")
    _, status = os.waitpid(agent, 0)
    if os.WIFSIGNALED(status):
        say(f"the agent was {processes.describe_exit(-os.WTERMSIG(status))}; ending what it left")
    remains.end(folder)
