"""The keeper: the agent's parent, which cleans up after the agent, and restarts the agent of a detached run.

The keeper waits for the agent and does little else. When an agent is killed, the kernel kills its tasks, but not the
tasks' children, and the agent's lock remains. The keeper kills these children and removes the lock at once. By then the
kernel has made them children of the keeper, whatever their session and age, so no record has to name them. The keeper
opens no files and reads only the agent's pulse. So the usual causes that kill an agent (memory, a mistake, an
operator's SIGKILL) spare the keeper.

No launcher watches a detached run, so the keeper forks the next agent. The keeper has the request in memory, with
secrets that are in no file. An agent that ended in an orderly way, as after ``launch down``, has no successor.

``keeping`` has the keeper's decisions: whether the agent is frozen, and what follows its end. This module forks, reads,
waits and kills.
"""

import contextlib
import os
import signal
import time
from typing import Callable, NamedTuple, Tuple

from launch.agent import leftovers
from launch.agent.linux import processes
from launch.agent.linux.open_files import readable
from launch.agent.linux.procfs import since_boot
from launch.agent.service.keeping import BEGIN_S, FAILED, Keeping, Moment, PulseWatch, owns_records
from launch.agent.state import boot_unit
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.supervision.agent_lives import WINDOW_S


class Pulse:
    """The pipe by which the agent sends heartbeats, one byte each, to the keeper.

    After the fork, call ``mine`` in the agent and ``watch`` in the keeper.
    """

    def __init__(self) -> None:
        self._out, self._in = os.pipe()

    def mine(self) -> None:
        """Close the reading end; the agent calls this method."""
        os.close(self._out)
        os.set_blocking(self._in, False)  # a keeper that does not read must not block the agent

    def close(self) -> None:
        """Close both ends of the pipe, because no agent could be started."""
        os.close(self._out)
        os.close(self._in)

    def write(self, what: int) -> None:
        """Write the byte ``what`` to the keeper."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError):  # the keeper is frozen, or has ended
            os.write(self._in, bytes([what]))

    def watch(self, watch: PulseWatch) -> None:
        """Pass the heartbeats to ``watch`` until they are missing, or the agent has closed the pipe or ended."""
        os.close(self._in)
        try:
            while watch.goes_on(moment()):
                if readable(self._out, watch.wait_s):
                    watch.read(os.read(self._out, 65536), moment())
        finally:
            os.close(self._out)


def moment() -> Moment:
    """Return the present time of this machine by both clocks."""
    return Moment(time.monotonic(), since_boot())


Serve = Callable[[processes.Process, Pulse], int]  # from the keeper and the pulse to an exit code


class Service(NamedTuple):
    """The functions and settings by which a keeper starts and replaces agents.

    Attributes:
      first: the function that runs as the first agent.
      next: the function that runs as an agent in place of a dead agent.
      restarts: whether another agent replaces a dead agent.
      release: closes the files that only the first agent must hold open.
      patience_s: the seconds for which heartbeats may be missing.
    """

    first: Serve
    next: Serve
    restarts: bool
    release: Callable[[], None]
    patience_s: float


def keep(folder: RunFolder, service: Service) -> int:
    """Run the agent in a child process, and replace a dead agent; return the last agent's exit code after the cleanup.

    In the child process, the function returns the agent's own exit code.

    Raises:
      OSError: this host has no process table, or cannot start a process.
    """
    own = processes.inspect(os.getpid())
    if own is None:
        raise OSError("/proc: expected a process table, found none; mount it")
    processes.adopt_orphans()
    agent, pulse = _fork()
    if agent == 0:
        return _serve(folder, service.first, own, pulse)
    service.release()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # for the agent; a host that shuts down signals every process
    processes.show_as(f"launch keeper of {folder.run} on {folder.host}")
    keeping, watch = Keeping(service.restarts), PulseWatch(service.patience_s, moment())
    pause_s = keeping.ended(_watch(folder, agent, pulse, watch), watch.begun, time.monotonic())
    while pause_s is not None:
        say(f"starting the agent again in {pause_s:.1f} s")
        time.sleep(pause_s)
        try:
            agent, pulse = _fork()
        except OSError as error:  # out of memory, which may also have killed the agent
            say(f"cannot start the agent: {error.strerror}")
            pause_s = keeping.pause_s(time.monotonic())
            continue
        if agent == 0:
            return _serve(folder, service.next, own, pulse)
        watch = PulseWatch(service.patience_s, moment(), BEGIN_S)
        pause_s = keeping.ended(_watch(folder, agent, pulse, watch), watch.begun, time.monotonic())
    if keeping.too_many:
        say(f"the agent ended {keeping.too_many} times within {WINDOW_S:.0f} s; not starting it again")
    if keeping.removes_unit:
        boot_unit.remove(folder)
    return keeping.code


def _fork() -> Tuple[int, Pulse]:
    """Fork the agent; return its pid, which is 0 in the agent itself, and the pulse between both."""
    pulse = Pulse()
    try:
        return os.fork(), pulse
    except OSError:
        pulse.close()
        raise


def _serve(folder: RunFolder, serve: Serve, keeper: processes.Process, pulse: Pulse) -> int:
    """Run the agent in this child process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    processes.show_as(f"launch agent of {folder.run} on {folder.host}")
    pulse.mine()
    return serve(keeper, pulse)


def _watch(folder: RunFolder, agent: int, pulse: Pulse, watch: PulseWatch) -> int:
    """Wait for the end of the agent, clean up, and return its exit code; after a signal the result is ``FAILED``."""
    pulse.watch(watch)
    if watch.is_missing:
        say(f"the agent is frozen: no sign of it for {watch.waited_s:.0f} s; killing it and its tasks")
        os.kill(agent, signal.SIGKILL)
        leftovers.end(folder)  # before its end: an agent that hangs in the kernel dies late, as do its tasks
    _, status = os.waitpid(agent, 0)
    if os.WIFSIGNALED(status):
        say(f"the agent was {processes.describe_exit(-os.WTERMSIG(status))}; ending the processes that it left")
    code = FAILED if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    leftovers.end_as_keeper(folder, is_ours=owns_records(code))
    return code
