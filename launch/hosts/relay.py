"""A connection to a port of a host, through the stdin and stdout of a program on that host."""

import contextlib
from typing import List

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import Channel, Silence
from launch.hosts.conversation import Conversation, Words

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
    # In hexadecimal, because csh reads no line end in a word.
    return [python, "-S", "-c", f'exec(bytes.fromhex("{_PROGRAM.encode().hex()}"))', str(port)]


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
