"""The way between a member and the lead, in the hands of a test: it can lose bytes, be cut, and be out."""

import socket
from threading import Thread
from typing import List

from launch.agent.linux.sockets import free_ports


class Cable:
    """Passes connections to its own port on to another port of this machine.

    ``lossy``: bytes are taken and lost, as when packets vanish. ``out``: connections are refused.
    ``connections`` counts those that were passed on.
    """

    def __init__(self, port: int):
        self._target = port
        self.port = free_ports(1)[0]
        self.lossy = self.out = False
        self.connections = 0
        self._ends: List[socket.socket] = []
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", self.port))
        self._listener.listen(8)
        self._threads = [self._begin(self._accept)]

    def cut(self) -> None:
        """Ends every connection; new ones are passed on, unless ``out``."""
        for end in self._ends:
            _shut(end)

    def close(self) -> None:
        """Ends everything."""
        _shut(self._listener)
        self.cut()
        for thread in self._threads:
            thread.join(10)
        for end in [self._listener, *self._ends]:
            end.close()

    def _begin(self, work: object, *arguments: socket.socket) -> Thread:
        thread = Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        thread.start()
        return thread

    def _accept(self) -> None:
        while True:
            try:
                near = self._listener.accept()[0]
            except OSError:
                return
            self._ends.append(near)
            if self.out:
                _shut(near)
                continue
            far = socket.create_connection(("127.0.0.1", self._target), 10)
            self._ends.append(far)
            self.connections += 1
            self._threads += [self._begin(self._pass_on, near, far), self._begin(self._pass_on, far, near)]

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if not self.lossy:
                    target.sendall(data)
        except OSError:
            pass  # it was cut
        _shut(target)


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # it was shut already
