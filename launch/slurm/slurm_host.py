"""A host reached by ``srun``: each program on the host, and each connection to one of its ports, is a step of the job.

The bytes of a connection pass through the stdin and stdout of the step.
"""

import contextlib
import os
from typing import Any, List, Mapping, Optional, Sequence

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import Channel, Host, Silence
from launch.hosts.conversation import Conversation, Words
from launch.hosts.local_host import LocalChannel
from launch.slurm import srun
from launch.slurm.srun import Allocation, EndingSteps, leave

ANSWER_S = 20.0
LOOK_S = 60.0
MARK = b"\nlaunch: connected\n"
_PROGRAM = f"""\
import os, socket, sys, threading
far = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
far.settimeout(None)
def write(data):
    while data:
        data = data[os.write(1, data):]
def back():
    try:
        for data in iter(lambda: far.recv(65536), b""):
            write(data)
    finally:
        os._exit(0)
write({MARK!r})
threading.Thread(target=back).start()
for data in iter(lambda: os.read(0, 65536), b""):
    far.sendall(data)
far.shutdown(socket.SHUT_WR)
"""


def relay_argv(python: str, port: int) -> List[str]:
    """Return the argv of a program that connects its stdin and stdout to a port of its own machine."""
    return [python, "-S", "-c", _PROGRAM, str(port)]


class Relayed:
    """A connection through a channel, with the methods of a socket that a tunnel needs."""

    def __init__(self, channel: Channel):
        self._channel = channel

    def sendall(self, data: bytes) -> None:
        """Send bytes. Raises OSError when the other side is gone."""
        self._channel.send(data)

    def recv(self, size: int) -> bytes:
        """Return some bytes, of any size; b"" at the end."""
        while True:
            with contextlib.suppress(Silence):
                return self._channel.take_unread() or self._channel.receive(LOOK_S)

    def shutdown(self, how: int) -> None:
        """Close the sending side."""
        self._channel.end()

    def close(self) -> None:
        """End the connection."""
        self._channel.close()


def connected(host: str, port: int, channel: Channel) -> Relayed:
    """Return the connection that a channel's program has opened.

    Raises:
      HostProblem: the program has opened no connection.
    """
    nobody = f"no answer at port {port}: "
    words = Words(broke=nobody, ended=nobody, late=f"no answer at port {port}", ended_kind=ProblemKind.UNREACHABLE)
    try:
        Conversation(host, channel, "", words).skip_to(MARK, len(MARK), ANSWER_S)
    except HostProblem:
        channel.close()
        raise
    return Relayed(channel)


class StepChannel(LocalChannel):
    """One ``srun``, which runs one program on one node."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], ending: EndingSteps):
        super().__init__(argv, env)
        self._stays, self._ending = False, ending

    def leave_running(self) -> None:
        self._stays = True

    def complaint(self) -> str:
        return srun.complaint_of_program(super().complaint())

    def last_words(self) -> str:
        """Return the last line that arrived; without one, the last line of ``srun`` on stderr."""
        return super().last_words() or next(iter(super().complaint().splitlines()[-1:]), "")

    def _end(self) -> None:
        if self._stays:
            leave(self._process)
        else:
            self._ending.add(self._process)


class SlurmHost(Host):
    """A node of the allocation, by its name in Slurm.

    Args:
      environ: the environment of every ``srun``, without secrets: ``srun.environment``.
      ending: collects the steps that must end.
    """

    def __init__(
        self,
        name: str,
        python: str,
        allocation: Allocation,
        environ: Mapping[str, str],
        ending: EndingSteps,
        before: Sequence[str] = (),
    ):
        super().__init__(name, python, before)
        self._allocation, self._environ, self._ending = allocation, environ, ending

    @property
    def job(self) -> str:
        """Return the Slurm job that has the host."""
        return self._allocation.job

    def connect(self) -> None:
        """Check that the host is in the allocation. Each program opens its own connection."""
        problem = self._allocation.problem_of(self.name)
        if problem is not None:
            raise problem

    def open(self, argv: Sequence[str]) -> Channel:
        return self._step(srun.holding(argv))

    def dial(self, port: int) -> Any:
        channel = self._step(relay_argv(self.python, port), raw=True)
        return connected(self.name, port, channel)

    def refusal(self, complaint: str) -> Optional[HostProblem]:
        return srun.problem(self.name, self.job, complaint)

    def _step(self, argv: Sequence[str], raw: bool = False) -> StepChannel:
        self.connect()
        try:
            return StepChannel(srun.command(self.name, argv, self.before, raw), self._environ, self._ending)
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise HostProblem(self.name, ProblemKind.HERE, f"cannot start srun: {why}") from error
