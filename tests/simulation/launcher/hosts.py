"""A simulated host as a launcher reaches it, in the place of SSH: a login, and a connection for each program."""

import socket
from contextlib import ExitStack
from typing import Any, Dict, List, Mapping, Optional, Sequence

from launch.errors import HostProblem, ProblemKind
from launch.hosts.channel import CHUNK, Channel, Host, Silence
from tests.simulation.launcher.baton import wait
from tests.simulation.launcher.streams import Stream, dial

SSHD = 22
LOGIN_S = 0.2


class SimulatedChannel(Channel):
    """A program on a host."""

    def __init__(self, stream: Stream):
        super().__init__()
        self._stream = stream

    def send(self, data: bytes) -> None:
        if data:
            self._stream.write(data)

    def receive(self, timeout_s: float) -> bytes:
        if not self._stream.wait(timeout_s):
            raise Silence
        return self._stream.read(CHUNK)

    def end(self) -> None:
        raise AssertionError("no simulated launcher ends its requests alone")

    def complaint(self) -> str:
        return ""

    def close(self) -> None:
        self._stream.close()


class SimulatedHost(Host):
    """A host by its name."""

    def __init__(self, name: str, python: str, network: Any, connect_timeout_s: float):
        super().__init__(name, python)
        self._network, self._connect_timeout_s = network, connect_timeout_s
        self._streams: List[Stream] = []
        self._idle: Optional[Stream] = None
        self._closings = 0

    def connect(self) -> None:
        closings, stream = self._closings, self._login()
        if self._closings != closings:
            stream.close()
            raise HostProblem(self.name, ProblemKind.SLOW, "it was given up during the login")
        self._idle = stream
        self._streams.append(stream)

    def _login(self) -> Stream:
        try:
            stream = dial(self._network, self.name, SSHD, self._connect_timeout_s)
        except socket.timeout:
            late = f"no answer within {self._connect_timeout_s:.0f} s"
            raise HostProblem(self.name, ProblemKind.UNREACHABLE, late) from None
        except OSError as error:
            raise HostProblem(self.name, ProblemKind.UNREACHABLE, str(error)) from error
        wait(LOGIN_S)
        return stream

    def open(self, argv: Sequence[str]) -> Channel:
        if self._idle is None:
            self.connect()
        stream, self._idle = self._idle, None
        assert stream is not None
        if stream.is_over:
            raise HostProblem(self.name, ProblemKind.BROKEN, "the connection has ended")
        return SimulatedChannel(stream)

    def dial(self, port: int) -> Any:
        raise AssertionError("no simulated launcher asks for a port")

    def close(self) -> None:
        super().close()
        self._closings += 1
        streams, self._streams, self._idle = self._streams, [], None
        for each in streams:
            each.close()


def makes_hosts(network: Any) -> Any:
    """Return what is in the place of ``launch.transports.make_hosts``."""

    def make_hosts(pythons: Mapping[str, str], spec: Any, closing: ExitStack) -> Dict[str, Host]:
        timeout_s = spec.ssh.connect_timeout_s
        return {name: SimulatedHost(name, python, network, timeout_s) for name, python in pythons.items()}

    return make_hosts
