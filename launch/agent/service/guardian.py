"""The agent's parent, which waits for it and does nothing else, and then ends what it left.

The kernel kills the tasks of an agent that is killed, but not the tasks' children, and nobody
would remove its lock. The keeper does both at once. Those children are the keeper's own by then,
whatever session they are in and however young: the records need not name them. It opens nothing
and reads nothing but the agent's pulse, so what kills an agent (memory, a mistake, an operator's
SIGKILL) passes it by. An agent without a pulse is killed.
"""

import os
import signal
from typing import Callable

from launch.agent.linux import processes
from launch.agent.service.liveness_pipe import Pulse
from launch.agent.state import leftovers
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder

Serve = Callable[[processes.Process, Pulse], None]


def kept(folder: RunFolder, serve: Serve, release: Callable[[], None], patience_s: float) -> None:
    """Runs ``serve`` in a child, handing it the keeper, and returns when nothing of the run is left here.

    Args:
      patience_s: for a pulse that is missing.
      release: closes what only the child is to hold open.
    """
    keeper, pulse = processes.inspect(os.getpid()), Pulse()
    processes.adopt_orphans()
    agent = os.fork()
    if agent == 0 and keeper is not None:
        pulse.mine()
        serve(keeper, pulse)
        return
    release()
    processes.show_as(f"launch keeper of {folder.run} on {folder.host}")
    if pulse.watch(patience_s):
        say(f"the agent is frozen: no sign of it for {patience_s:.0f} s; killing it and what it has")
        os.kill(agent, signal.SIGKILL)
        leftovers.end(folder)  # before it is gone: one that hangs in the kernel dies late, and its tasks with it
    _, status = os.waitpid(agent, 0)
    if os.WIFSIGNALED(status):
        say(f"the agent was {processes.describe_exit(-os.WTERMSIG(status))}; ending what it left")
    leftovers.end_all(lambda: processes.descendants(processes.table(), os.getpid()))
    leftovers.end(folder)
