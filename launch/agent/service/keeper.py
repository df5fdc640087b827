"""The keeper: the agent's parent, which ends what the agent left.

The keeper waits for the agent and does nothing else. The kernel kills the tasks of an agent that
is killed, but not the tasks' children, and nobody would remove the agent's lock. The keeper
kills those children and removes the lock at once. By then the children are the keeper's own, in
any session and however young: the records need not name them. The keeper opens nothing and reads
nothing but the agent's pulse. So the causes that kill an agent (memory, a mistake, an operator's
SIGKILL) spare the keeper. The keeper kills an agent without a pulse.
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


def keep(folder: RunFolder, serve: Serve, release: Callable[[], None], patience_s: float) -> None:
    """Run ``serve`` in a child; return when nothing of the run is left here.

    ``serve`` receives the keeper and the pulse.

    Args:
      patience_s: the seconds to wait for a pulse that is missing.
      release: closes what only the child is to hold open.
    """
    own, pulse = processes.inspect(os.getpid()), Pulse()
    processes.adopt_orphans()
    agent = os.fork()
    if agent == 0 and own is not None:
        pulse.mine()
        serve(own, pulse)
        return
    release()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the agent; a host that shuts down sends it to every process
    processes.show_as(f"launch keeper of {folder.run} on {folder.host}")
    if pulse.watch(patience_s):
        say(f"the agent is frozen: no sign of it for {patience_s:.0f} s; killing it and its tasks")
        os.kill(agent, signal.SIGKILL)
        leftovers.end(folder)  # before it is gone: one that hangs in the kernel dies late, and its tasks with it
    _, status = os.waitpid(agent, 0)
    if os.WIFSIGNALED(status):
        say(f"the agent was {processes.describe_exit(-os.WTERMSIG(status))}; ending what it left")
    leftovers.end_all(lambda: processes.descendants(processes.table(), os.getpid()))
    leftovers.end(folder)
