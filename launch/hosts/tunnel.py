"""Forward each connection to a port of this machine to somewhere else."""

import contextlib
import socket
import socketserver
import threading
from typing import Any, Callable

from launch.errors import CannotStart, HostProblem, ProblemKind
from launch.hosts.channel import CHUNK

Dial = Callable[[], Any]  # a connection with the methods of a socket; raises HostProblem


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True


class Tunnel:
    """Listen on 127.0.0.1 while entered, and join each connection to one that ``dial`` makes.

    Args:
      port: 0: any that is free; ``Tunnel.port`` has it.

    Raises:
      CannotStart: the port is taken.
    """

    def __init__(self, dial: Dial, port: int):
        class Joined(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                _join(self.request, dial)

        try:
            self._server = _Server(("127.0.0.1", port), Joined)
        except OSError as error:
            taken = HostProblem(
                "this machine",
                ProblemKind.HERE,
                f"cannot listen on port {port}: {error.strerror}",
                advice="give another --port",
            )
            raise CannotStart([taken]) from error
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> "Tunnel":
        threading.Thread(target=self._server.serve_forever, daemon=True, name="tunnel").start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _join(near: Any, dial: Dial) -> None:
    with contextlib.suppress(HostProblem):  # the caller sees its connection end
        far = dial()
        with contextlib.closing(far):
            back = threading.Thread(target=_copy, args=(far, near), daemon=True, name="tunnel back")
            back.start()
            _copy(near, far)
            back.join()


def _copy(source: Any, target: Any) -> None:
    """Copy bytes until ``source`` ends, then shut down the sending side of ``target``."""
    with contextlib.suppress(OSError):  # either side may go at any time
        while True:
            data = source.recv(CHUNK)
            if not data:
                break
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
