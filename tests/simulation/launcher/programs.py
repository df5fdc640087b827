"""A simulated program that blocks: its threads, its signals, its open files, and its end."""

import asyncio
import errno
import math
import os
import signal
from contextlib import suppress
from functools import partial
from typing import Any, Callable, Dict, List, Optional

from launch.output import GOES_ON, Output
from tests.simulation.launcher.baton import Spot, Strand, present, wait


class Program:
    """A process of a launcher, or one that a launcher has started on a host.

    Args:
      world: has agenda and network; takes notes.
      machine: the host it runs on; None for a launcher's own machine.
      main: what its first thread does; an int that it returns is the exit code.
    """

    def __init__(self, world: Any, name: str, host: str, clock: Any, main: Callable[[], Any], machine: Any = None):
        self.world, self.name, self.agenda, self.fail = world, name, world.agenda, world.fail
        self.pid = world.new_pid()
        self.is_over = self.is_stopped = False
        self.code: Optional[int] = None
        self.ended_at: Optional[float] = None
        self.interrupted_at: Optional[float] = None  # by the first Ctrl-C
        self.handlers: Dict[int, Any] = {}
        self.files: Dict[int, Any] = {}  # by number
        self.closing: List[Callable[[], None]] = []  # what the kernel does when it ends
        self.joining: List[Callable[[], None]] = []  # as Python waits for the threads of its pools
        self.strands: List[Strand] = []
        self.shown: List[str] = []
        self.unprinted: Optional[int] = None  # why stdout takes nothing: the number of an error
        goes_on = name.startswith("launch ") and name.split()[1] in GOES_ON
        self._stdout = Output(1, "stdout", partial(self.print, 2), goes_on)
        self.loop = Spot(self, machine, clock, host, world.network)
        self._main = main
        self.begin(self._run)

    @property
    def can_run(self) -> bool:
        """Whether its threads may go on."""
        return not self.is_stopped and not self.loop.clock.is_asleep

    def begin(self, function: Callable[[], object]) -> Strand:
        """Start a thread."""
        self.strands = [each for each in self.strands if not each.is_over]
        strand = Strand(self, function)
        self.strands.append(strand)
        return strand

    def show(self, line: str) -> None:
        """Write a line to stdout, by way of the product's ``Output``; a handler of a signal has no thread here."""
        if present() is None:
            with suppress(OSError):
                self.print(1, line)
        elif line.strip():
            self._stdout.write(f"{line}\n".encode())

    def print(self, handle: int, line: str) -> None:
        """Print a line. Raises OSError where stdout takes nothing."""
        if handle == 1 and self.unprinted is not None:
            raise OSError(self.unprinted, os.strerror(self.unprinted))
        if line.strip():
            self.shown.append(line)
            self.world.note(self.loop.host, line)

    def _run(self) -> None:
        code = self._main()
        for join in self.joining:
            join()
        self.end(code if isinstance(code, int) else 0)

    def failed(self, error: BaseException) -> None:
        """A thread has ended by an exception."""
        if isinstance(error, SystemExit):
            self.end(error.code if isinstance(error.code, int) else 0)
            return
        if isinstance(error, OSError) and self.loop.machine is not None:  # a verb that loses its agent or its launcher
            self.end(1)
            return
        self.fail(f"I0: {self.name}: {error!r}")
        self.end(1)

    # -- what the kernel does

    def end(self, code: int, has_power: bool = True) -> None:
        """It has ended: so do its other threads, and its connections."""
        if self.is_over:
            return
        self.is_over, self.code, self.loop.is_dead = True, code, True
        self.ended_at = self.agenda.now
        if self.loop.machine is None:
            self.world.note(self.loop.host, f"{self.name} ends: {code}")
        self.world.network.died(self.loop, has_power)
        for close in self.closing if has_power else ():
            close()
        for strand in self.strands:
            strand.look_soon()

    def take(self, number: int) -> None:
        """Get a signal."""
        if self.is_over:
            return
        if number == signal.SIGCONT:
            self._go_on()
        if number == signal.SIGINT and self.interrupted_at is None:
            self.interrupted_at = self.agenda.now
        handler = self.handlers.get(number)
        if number == signal.SIGSTOP or (number == signal.SIGTSTP and handler is None):
            self.is_stopped = True
        elif callable(handler):
            self._handle(handler, number)
        elif handler is not signal.SIG_IGN and number != signal.SIGCONT:
            self.end(-number)

    def _handle(self, handler: Any, number: int) -> None:
        """Call its handler between two steps of its first thread; a stopped process does so when it goes on."""

        def handle() -> None:
            if self.can_run and not self.is_over:
                with self.loop.within():
                    handler(number, None)
            elif not self.is_over:
                self.agenda.after(0.05, handle)

        self.agenda.add(self.agenda.now, handle)

    def _go_on(self) -> None:
        if self.is_stopped:
            self.is_stopped = False
            self.woke()

    def woke(self) -> None:
        """Go on, after a stop or a suspension of the machine."""
        self.loop.let_happen()
        for strand in self.strands:
            strand.look_soon()

    def forget(self) -> None:
        """End the threads, once the world is over."""
        self.is_over = self.loop.is_dead = True
        for strand in self.strands:
            while not strand.is_over:
                strand.go_on()


def me() -> Program:
    """Return the program that runs now."""
    program: Program = asyncio.get_event_loop().program  # type: ignore[attr-defined]
    return program


class Poll:
    """In the place of ``select.poll``, for the file that a program prints to."""

    def register(self, handle: int, what: int) -> None:
        pass

    def poll(self, milliseconds: float = math.inf) -> List[int]:
        """Wait until somebody reads."""
        program = me()
        is_read = wait(milliseconds / 1000, lambda: program.unprinted != errno.EAGAIN)
        return [1] if is_read else []


def write(handle: int, data: bytes) -> int:
    """Print, as ``os.write`` does. Raises OSError."""
    me().print(handle, data.decode().rstrip())
    return len(data)


def no_link(path: str) -> str:
    """Know no path of an open file. Raises OSError."""
    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))


def kill(pid: int, number: int) -> None:
    """Signal the program that runs now, as ``os.kill`` does; after a stop it goes on when it is continued."""
    program = me()
    assert pid == program.pid, f"{program.name} signals {pid}"
    program.take(number)
    is_in_a_thread = present() is not None  # else a handler of a signal has called, which ends at once
    if is_in_a_thread and (program.is_stopped or program.is_over):
        wait(1e-3)
