"""The keeper: the agent's parent, which ends what the agent left, and starts the agent of a detached run again.

The keeper waits for the agent and does little else. The kernel kills the tasks of an agent that is killed, but not the
tasks' children, and nobody would remove the agent's lock. The keeper kills those children and removes the lock at once.
By then the children are the keeper's own, in any session and however young: the records need not name them. The keeper
opens nothing and reads nothing but the agent's pulse. So the causes that kill an agent (memory, a mistake, an
operator's SIGKILL) spare the keeper. The keeper kills an agent without a pulse.

No launcher watches a detached run, so there the keeper forks the next agent. It has the request in its memory, with
secrets that are in no file. An agent that ended in order, as after ``launch down``, has no successor.
"""

import os
import signal
import time
from typing import Callable, NamedTuple, Optional

from launch.agent.linux import processes
from launch.agent.service.liveness_pipe import Pulse
from launch.agent.state import boot_unit, containers, leftovers
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.supervision.agents import WINDOW_S, Ends

OVER, FAILED = 0, 1  # exit codes of an agent: its part of the run is over; it could not begin
AWAY, TAKEN = 3, 4  # it goes on after a boot of the host; another agent has the name
FIRST_PAUSE_S, LONGER, LONGEST_PAUSE_S = 0.5, 4.0, 60.0  # before a next agent, and before one that follows others soon
BEGIN_S = 60.0  # for a next agent, before it is frozen

Serve = Callable[[processes.Process, Pulse], int]  # from the keeper and the pulse to an exit code


class Service(NamedTuple):
    """The service that the keeper watches.

    Attributes:
      first: serves as the first agent.
      next: serves as an agent in the place of one that died; None where the run does without.
      release: closes what only the first agent is to hold open.
      patience_s: the seconds to wait for a pulse that is missing.
    """

    first: Serve
    next: Optional[Serve]
    release: Callable[[], None]
    patience_s: float


def keep(folder: RunFolder, service: Service) -> int:
    """Run the service in a child, again where it dies; return its last exit code when nothing of it is left here.

    Raises:
      OSError: this host has no process table.
    """
    own = processes.inspect(os.getpid())
    if own is None:
        raise OSError("/proc: expected a process table, found none; mount it")
    processes.adopt_orphans()
    pulse = Pulse()
    agent = os.fork()
    if agent == 0:
        return _serve(folder, service.first, own, pulse)
    service.release()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the agent; a host that shuts down sends it to every process
    processes.show_as(f"launch keeper of {folder.run} on {folder.host}")
    code, ends = _watch(folder, agent, pulse, service.patience_s), Ends()
    goes_on = pulse.begun and service.next is not None
    while goes_on and code not in (OVER, AWAY) and _pause(ends):
        try:
            pulse = Pulse()
            agent = os.fork()
        except OSError as error:  # no memory, as when that has killed the agent
            say(f"cannot start the agent: {error.strerror}")
            continue
        if agent == 0 and service.next is not None:
            return _serve(folder, service.next, own, pulse)
        code = _watch(folder, agent, pulse, service.patience_s, BEGIN_S)
    if code == OVER or (goes_on and code != AWAY):
        boot_unit.remove(folder)
    return code


def _serve(folder: RunFolder, serve: Serve, keeper: processes.Process, pulse: Pulse) -> int:
    """Be the agent."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    processes.show_as(f"launch agent of {folder.run} on {folder.host}")
    pulse.mine()
    return serve(keeper, pulse)


def _watch(folder: RunFolder, agent: int, pulse: Pulse, patience_s: float, begin_s: Optional[float] = None) -> int:
    """Wait for the end of the agent, end what it left, and return its exit code; after a signal that is ``FAILED``."""
    if pulse.watch(patience_s, begin_s):
        say(f"the agent is frozen: no sign of it for {pulse.waited_s:.0f} s; killing it and its tasks")
        os.kill(agent, signal.SIGKILL)
        leftovers.end(folder)  # before it is gone: one that hangs in the kernel dies late, and its tasks with it
    _, status = os.waitpid(agent, 0)
    if os.WIFSIGNALED(status):
        say(f"the agent was {processes.describe_exit(-os.WTERMSIG(status))}; ending what it left")
    code = FAILED if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    is_ours = code != TAKEN  # by an agent of this run, perhaps: what the records name is then of that one
    if is_ours:
        containers.remove(folder)  # before the processes of their runtime are killed
    leftovers.end_all(lambda: processes.descendants(processes.table(), os.getpid()))
    if is_ours:
        leftovers.end(folder)
    return code


def _pause(ends: Ends) -> bool:
    """Count an end, and wait before the next agent; return False where agents have ended too often for another one."""
    now = time.monotonic()
    ends.add(now)
    too_many = ends.too_many(now)
    if too_many:
        say(f"the agent ended {too_many} times within {WINDOW_S:.0f} s; not starting it again")
        return False
    pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * LONGER ** (ends.recent(now) - 1))
    say(f"starting the agent again in {pause_s:.1f} s")
    time.sleep(pause_s)
    return True
