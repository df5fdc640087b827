"""Hosts and channels without machines."""

from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence, Union

from cluster.spec.model import Spec, Ssh, TaskSpec
from launch.errors import HostProblem, ProblemKind
from launch.fleet import Fleet
from launch.hosts.bundle import Bundle, Code
from launch.hosts.channel import Channel, Host, Silence
from launch.hosts.rpc import MARK, RECEIVER
from launch.signals import Interrupts

CODE = Code({"launcher": Bundle(b"the code", "1" * 16)})


class FakeChannel(Channel):
    """Says what it was made with: bytes as they come, those that a function returns then, and silences; then it ends.

    ``sent``: what it was told, after the text of the receiver.
    """

    def __init__(self, *script: Union[bytes, Callable[[], bytes], Silence, OSError], complaint: str = ""):
        super().__init__()
        self._script, self._complaint = list(script), complaint
        self.sent = b""
        self.closed = self.ended = 0

    def begin(self, script: Sequence[Any]) -> "FakeChannel":
        """Say this before all else."""
        self._script[:0] = script
        return self

    def send(self, data: bytes) -> None:
        self.sent += data if data != RECEIVER else b""

    def receive(self, timeout_s: float) -> bytes:
        said = self._script.pop(0) if self._script else b""
        if isinstance(said, Exception):
            raise said
        return said() if callable(said) else said

    def end(self) -> None:
        self.ended += 1

    def complaint(self) -> str:
        return self._complaint

    def close(self) -> None:
        self.closed += 1


class FakeHost(Host):
    """A host whose programs are channels that were made before.

    Unless it ``keeps`` them, each verb has a channel of its own, closed when it has answered.
    """

    keeps = False
    prints: Sequence[Any] = (MARK,)  # what comes before a program's first answer

    def __init__(
        self, name: str, *channels: FakeChannel, connect: Optional[Callable[[str], None]] = None, python: str = "py"
    ):
        super().__init__(name, python)
        self.channels, self._connect = list(channels), connect
        self.opened: List[Sequence[str]] = []
        self.closed = 0

    def connect(self) -> None:
        if self._connect is not None:
            self._connect(self.name)

    def open(self, argv: Sequence[str]) -> Channel:
        self.opened.append(argv)
        if not self.channels:
            raise HostProblem(self.name, ProblemKind.UNREACHABLE, "out of reach")
        return self.channels.pop(0).begin(self.prints)

    def keep(self, channel: Channel, stay_s: float) -> None:
        super().keep(channel, stay_s) if self.keeps else channel.close()

    def dial(self, port: int) -> Any:
        raise HostProblem(self.name, ProblemKind.UNREACHABLE, f"nothing at port {port}")

    def close(self) -> None:
        super().close()
        self.closed += 1


def spec_of(*tasks: str, fanout: int = 32, **fields: Any) -> Spec:
    """The spec of tasks written ``worker:1@gpu02``."""
    ssh = fields.pop("ssh", Ssh(fanout=fanout))
    return Spec(Path("r.yaml"), "r", tuple(map(_task, tasks)), command=("a",), ssh=ssh, workdir="/w", **fields)


def _task(text: str) -> TaskSpec:
    name, host = text.split("@")
    role, index = name.split(":")
    return TaskSpec(role, int(index), host, f"{host}:2222", 2222)


def fleet_of(hosts: Mapping[str, Host], fanout: int = 32) -> Fleet:
    """A fleet of hosts that need no connection; each has a worker."""
    spec = spec_of(*(f"worker:{index}@{name}" for index, name in enumerate(hosts)), fanout=fanout)
    fleet = Fleet(spec, {}, CODE, Interrupts())
    fleet.hosts.update(hosts)
    return fleet
