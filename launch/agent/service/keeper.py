"""The keeper: the agent's parent, which cleans up after the agent, and restarts the agent of a detached run.

The keeper waits for the agent and does little else. When an agent is killed, the kernel kills its tasks, but not the
tasks' children, and the agent's lock remains. The keeper kills these children and removes the lock at once. By then the
children are the keeper's own, in any session and at any age, so the records need not name them. The keeper opens no
files and reads only the agent's pulse. So the usual causes that kill an agent (memory, a mistake, an operator's
SIGKILL) spare the keeper.

No launcher watches a detached run, so the keeper forks the next agent. The keeper has the request in memory, with
secrets that are in no file. An agent that ended in an orderly way, as after ``launch down``, has no successor.

The pulse shows the keeper that the agent is not frozen. A stopped agent, or an agent that hangs in the kernel, keeps
its lock and its tasks, but no longer acts. Such an agent would not kill its tasks when the lead falls silent. So the
keeper kills an agent whose pulse is missing, before the lead counts the host as lost.

A member may freeze at a time when the lead has already received nothing from the member for a while. So each beat
grants a time limit for the next beat. A machine may also be suspended while its agent is frozen; the lead continues to
count. So where the tasks of a member must be gone after a silence, the keeper counts the suspension, too.

The pulse is a pipe: the agent writes a byte for every beat, and a last byte when the agent closes. After the last byte
the keeper no longer counts. The end of the pipe means the end of the agent.
"""

import asyncio
import contextlib
import math
import os
import signal
import time
from typing import Callable, NamedTuple, Optional

from launch.agent import leftovers
from launch.agent.linux import processes
from launch.agent.linux.open_files import readable
from launch.agent.linux.procfs import since_boot
from launch.agent.state import boot_unit
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.supervision.agents import WINDOW_S, Ends

BEAT_S = 0.5
PART = 0.8  # of the silence after which a host is lost
LEAST_S = 8.0  # a busy machine may keep a healthy agent waiting for seconds
CHANCE_S = 1.0  # for an agent that was stopped together with its keeper, as machines are
SLEPT_S = 3.0  # a shorter suspension does not count: a healthy agent needs its time after it
SHORTEST_S = 1.0  # for a beat whose agent must soon kill its tasks
LOOK_S = 0.5  # between two looks at the clock since boot
_PARTS = 100  # of the keeper's patience: a beat is the number of parts that it grants
_MUST_GO = 100  # added to a beat where the tasks must be gone after a silence
_END = 0


class Pulse:
    """Both ends of the pipe. Call ``mine`` in the agent and ``watch`` in the keeper, after the fork.

    ``begun`` is True once ``watch`` has received a beat, which shows that the agent was ready. ``waited_s`` is the time
    for which ``watch`` waits for the next beat, in seconds.
    """

    def __init__(self) -> None:
        self.begun, self.waited_s = False, 0.0
        self._out, self._in = os.pipe()

    def mine(self) -> None:
        """Keep only the writing end, in the agent."""
        os.close(self._out)
        os.set_blocking(self._in, False)  # a keeper that does not read must not block the agent

    async def beat(self, patience_s: float, left_s: Callable[[], float]) -> None:
        """Write beats until cancelled, which ends the pulse.

        Args:
          patience_s: the keeper's patience.
          left_s: returns the seconds until the tasks of this host must be gone.
        """
        try:
            while True:
                left = left_s()
                granted = max(1, int(_PARTS * granted_s(patience_s, left) / patience_s))
                self._write(granted + (_MUST_GO if left < math.inf else 0))
                await asyncio.sleep(BEAT_S)
        finally:
            self._write(_END)

    def _write(self, what: int) -> None:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # the keeper is frozen, or has ended
            os.write(self._in, bytes([what]))

    def watch(self, patience_s: float, first_s: Optional[float] = None) -> bool:
        """Return whether the pulse was missing for ``patience_s``, or for the part of it that the last beat granted.

        The result is False when the agent has closed the pulse or ended. The first beat may take ``first_s``; with None
        the first beat may take any time, as the preparation of a host does.
        """
        os.close(self._in)
        granted, must_go = _PARTS, False
        try:
            while True:
                if self.begun:
                    patience = patience_s * granted / _PARTS
                    self.waited_s = patience + CHANCE_S
                    came = self._comes(patience, must_go) or readable(self._out, CHANCE_S)
                else:
                    self.waited_s = first_s or 0.0
                    came = readable(self._out, first_s)
                if not came:
                    return True
                beats = os.read(self._out, 65536)
                if not beats or _END in beats:
                    return False
                self.begun, must_go = True, beats[-1] > _MUST_GO
                granted = beats[-1] - (_MUST_GO if must_go else 0)
        finally:
            os.close(self._out)

    def _comes(self, patience_s: float, must_go: bool) -> bool:
        """Return whether a beat comes in time.

        With ``must_go``, the time for which this machine is suspended counts, too, if it is longer than ``SLEPT_S``.
        """
        began, since_boot_at = time.monotonic(), since_boot()
        while True:
            awake_s = time.monotonic() - began
            slept_s = since_boot() - since_boot_at - awake_s
            if awake_s >= patience_s or (must_go and slept_s > SLEPT_S and awake_s + slept_s > patience_s + SLEPT_S):
                return False
            if readable(self._out, min(LOOK_S, patience_s - awake_s)):
                return True


def patience_s(lost_after_s: float) -> float:
    """Return the seconds for which a pulse may be missing, where a host is lost after ``lost_after_s``."""
    return max(LEAST_S, PART * lost_after_s)


def granted_s(patience_s: float, left_s: float) -> float:
    """Return the time limit in seconds for the next beat, where an agent's tasks must be gone in ``left_s``."""
    return min(patience_s, max(SHORTEST_S, left_s - CHANCE_S))


OVER, FAILED = 0, 1  # exit codes of an agent: its part of the run is over; the agent could not begin
AWAY, TAKEN = 3, 4  # it continues after a boot of the host; another agent has the name
FIRST_PAUSE_S, LONGER, LONGEST_PAUSE_S = 0.5, 4.0, 60.0  # before the next agent; longer after ends in quick succession
BEGIN_S = 60.0  # for the first beat of a next agent

Serve = Callable[[processes.Process, Pulse], int]  # from the keeper and the pulse to an exit code


class Service(NamedTuple):
    """The service that the keeper watches.

    Attributes:
      first: serves as the first agent.
      next: serves as an agent in the place of a dead one; None where the run has no successors.
      release: closes the files that only the first agent must hold open.
      patience_s: the seconds to wait for a missing pulse.
    """

    first: Serve
    next: Optional[Serve]
    release: Callable[[], None]
    patience_s: float


def keep(folder: RunFolder, service: Service) -> int:
    """Run the service in a child, and restart a dead one; return the last exit code after the cleanup.

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
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the agent; a host that shuts down signals every process
    processes.show_as(f"launch keeper of {folder.run} on {folder.host}")
    code, ends = _watch(folder, agent, pulse, service.patience_s), Ends()
    goes_on = pulse.begun and service.next is not None
    while goes_on and code not in (OVER, AWAY) and _pause(ends):
        try:
            pulse = Pulse()
            agent = os.fork()
        except OSError as error:  # out of memory, which may also have killed the agent
            say(f"cannot start the agent: {error.strerror}")
            continue
        if agent == 0 and service.next is not None:
            return _serve(folder, service.next, own, pulse)
        code = _watch(folder, agent, pulse, service.patience_s, BEGIN_S)
    if code == OVER or (goes_on and code != AWAY):
        boot_unit.remove(folder)
    return code


def _serve(folder: RunFolder, serve: Serve, keeper: processes.Process, pulse: Pulse) -> int:
    """Run the agent in this child process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    processes.show_as(f"launch agent of {folder.run} on {folder.host}")
    pulse.mine()
    return serve(keeper, pulse)


def _watch(folder: RunFolder, agent: int, pulse: Pulse, patience_s: float, begin_s: Optional[float] = None) -> int:
    """Wait for the end of the agent, clean up, and return its exit code; after a signal the result is ``FAILED``."""
    if pulse.watch(patience_s, begin_s):
        say(f"the agent is frozen: no sign of it for {pulse.waited_s:.0f} s; killing it and its tasks")
        os.kill(agent, signal.SIGKILL)
        leftovers.end(folder)  # before its end: an agent that hangs in the kernel dies late, as do its tasks
    _, status = os.waitpid(agent, 0)
    if os.WIFSIGNALED(status):
        say(f"the agent was {processes.describe_exit(-os.WTERMSIG(status))}; ending what it left")
    code = FAILED if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    leftovers.end_as_keeper(folder, is_ours=code != TAKEN)  # else the records may belong to the agent that has the name
    return code


def _pause(ends: Ends) -> bool:
    """Count an end, and wait before the next agent; return False where agents have ended too often."""
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
