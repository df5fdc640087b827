"""A program that runs on a host, spoken to over its stdin and stdout.

There are two kinds of channel, a subprocess of ours and an SSH session (``local`` and
``remote``); everything above them is the same code.
"""

import json
import time
from abc import ABC, abstractmethod
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from launch.agent.text.plain_text import cleaned, may_hold_controls

CHUNK = 1 << 16
LONGEST = 1 << 26  # bytes of a line; the status of 10,000 tasks has some 10 MB


class Silence(Exception):
    """Nothing came in time."""


class Noise(OSError):
    """A line came that is no answer of ours, so the conversation is broken; the text shows it."""


class Channel(ABC):
    """Bytes to and from one running program, with every wait bounded."""

    def __init__(self) -> None:
        self._unread = b""
        self._over = False

    @property
    def torn(self) -> bool:
        """Whether the stream has ended in the middle of a line."""
        return self._over and bool(self._unread)

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Writes to the program's stdin. Raises OSError when it is gone."""

    @abstractmethod
    def receive(self, timeout_s: float) -> bytes:
        """Some bytes of its stdout; b"" at the end. Raises Silence."""

    @abstractmethod
    def end(self) -> None:
        """Sends nothing more: the program sees the end of its stdin, and what it still says can be heard."""

    @abstractmethod
    def complaint(self) -> str:
        """The last lines of its stderr, once stdout has ended."""

    @abstractmethod
    def close(self) -> None:
        """Ends the conversation. The program sees the end of its stdin."""

    def tell(self, values: Mapping[str, Any]) -> None:
        """Sends one JSON line."""
        self.send(json.dumps(values).encode() + b"\n")

    def hear(self, timeout_s: float) -> Optional[Dict[str, Any]]:
        """The next JSON line, or None at the end.

        Raises:
          Silence: no whole line came in time. What did come is kept.
          Noise: the line is not a JSON object, or longer than any of ours.
        """
        until = time.monotonic() + timeout_s
        while b"\n" not in self._unread:
            if self._over:
                return None
            if len(self._unread) > LONGEST:
                raise Noise(f"expected a line of JSON, found {len(self._unread)} bytes without an end")
            data = self.receive(max(0.0, until - time.monotonic()))
            self._over = not data
            self._unread += data
        line, self._unread = self._unread.split(b"\n", 1)
        return _read(line.decode(errors="replace"))


def _read(line: str) -> Dict[str, Any]:
    """Return what a line tells, without what a terminal would obey: a host's word may be any program's."""
    try:
        values = json.loads(line)
        values = cleaned(values) if may_hold_controls(line) else values
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise Noise(f"expected a line of JSON, found {line[:200]!r}")
    return values


class Host(ABC):
    """A machine of the cluster, as the launcher reaches it."""

    def __init__(self, name: str, python: str):
        self.name, self.python = name, python
        self._kept: List[Tuple[float, Channel]] = []

    def keep(self, channel: Channel, stay_s: float) -> None:
        """Keeps a conversation whose program waits so long to be asked again."""
        self._kept.append((time.monotonic() + stay_s, channel))

    def kept(self) -> Optional[Channel]:
        """Takes a conversation that was kept; None where there is none that still counts."""
        while True:
            try:
                until, channel = self._kept.pop()
            except IndexError:  # not looked for first: another thread may take the last one
                return None
            if time.monotonic() < until:
                return channel
            channel.close()

    def prepare(self) -> None:
        """Does what must be done before several hosts are reached at a time, such as to ask for a passphrase.

        Raises HostProblem.
        """
        return

    @abstractmethod
    def connect(self) -> None:
        """Makes the connection. Raises HostProblem."""

    @abstractmethod
    def open(self, argv: Sequence[str]) -> Channel:
        """Starts a program there. Raises HostProblem."""

    @abstractmethod
    def dial(self, port: int) -> Any:
        """A connection to a port of the host's own loopback, with the methods of a socket. Raises HostProblem."""

    def close(self) -> None:
        """Ends the connection, and every conversation that was kept."""
        while self._kept:
            self._kept.pop()[1].close()
