"""Exchange bytes and lines with a program on a host, over its stdin and stdout; quote its command for the host's shell.

The kinds of channel are a subprocess on this machine, an SSH session and a step of Slurm (``local_host``, ``remote``
and ``slurm``). The code above the channels is the same for all kinds.
"""

import json
import shlex
import time
from abc import ABC, abstractmethod
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

from launch.agent.text import clean, may_hold_controls, plain
from launch.errors import HostProblem


def command_line(argv: Sequence[str], before: Sequence[str] = ()) -> str:
    """Return argv as one line for a shell: sh, bash, zsh, csh, fish or nushell.

    All these shells read a single-quoted word in the same way, if it has no single quote, backslash, ``!`` or line end.
    The launcher's own programs have no such words. A leading ``~/`` still means the home folder.

    Args:
      before: commands that the shell runs first, each only after the previous one has succeeded. The commands cannot
        read the program's standard input.
    """
    words = [shlex.quote(word) for word in argv]
    if argv[0].startswith("~/"):
        words[0] = "~/" + shlex.quote(argv[0][2:])
    return " && ".join([*(f"{command} </dev/null" for command in before), "exec " + " ".join(words)])


def cause(complaint: str) -> str:
    """Return the line with the reason in ``complaint``, the stderr of a program or shell; "" for an empty text.

    The last line has the reason. Only fish writes two more lines below it: the command, and a mark such as ``^~~^``.
    """
    lines = complaint.splitlines()
    if len(lines) > 2 and not lines[-1].strip(" ^~"):
        del lines[-2:]
    return lines[-1] if lines else ""


LOGIN_SHELL = "the login shell there"  # in words
CHUNK = 1 << 16
SHOWN = 200  # characters of an invalid answer in a message
LONGEST = 1 << 26  # bytes of a line; the status of 10,000 tasks has some 10 MB


class Silence(Exception):
    """No data arrived in time."""


class Noise(OSError):
    """The conversation is broken, because a received line is not a valid answer; the text shows the line."""


class Channel(ABC):
    """A stream of bytes to and from one running program; every wait is bounded."""

    def __init__(self) -> None:
        self._unread = bytearray()
        self._over = False

    @property
    def is_torn(self) -> bool:
        """Return whether the stream has ended in the middle of a line."""
        return self._over and bool(self._unread)

    @abstractmethod
    def send(self, data: bytes) -> None:
        """Write to the program's stdin. Raises OSError when the program is gone."""

    @abstractmethod
    def receive(self, timeout_s: float) -> bytes:
        """Return some bytes of the program's stdout; b"" at the end. Raises Silence."""

    @abstractmethod
    def end(self) -> None:
        """Close the program's stdin; the program's further output can still be received."""

    @abstractmethod
    def complaint(self) -> str:
        """Return the last lines of the program's stderr, once stdout has ended."""

    @abstractmethod
    def close(self) -> None:
        """End the conversation; the program sees the end of its stdin."""

    def leave_running(self) -> None:
        """Record that the program has started an agent, which outlives the conversation."""
        return

    def send_line(self, values: Mapping[str, Any]) -> None:
        """Send one JSON line."""
        self.send(json.dumps(values).encode() + b"\n")

    def skip_to(self, mark: bytes, most: int, timeout_s: float) -> bool:
        """Drop the bytes up to the end of ``mark``; return False where the stream ends without the mark.

        Without the mark, the received bytes stay: ``last_words`` returns the end of them.

        Raises:
          Silence: the mark did not arrive in time.
          Noise: more than ``most`` bytes arrived without the mark.
        """
        until = time.monotonic() + timeout_s
        while mark not in self._unread:
            if len(self._unread) > most + len(mark):
                raise Noise(
                    f"expected at most {most} bytes before its answer, found more, such as {self.last_words()!r}"
                )
            if self._over:
                return False
            self._receive_more(until)
        del self._unread[: self._unread.index(mark) + len(mark)]
        return True

    def take_unread(self) -> bytes:
        """Return the bytes that arrived and were not read."""
        data = bytes(self._unread)
        self._unread.clear()
        return data

    def last_words(self) -> str:
        """Return the last line that arrived and was not read, without control characters; "" for none."""
        lines = (plain(line)[:SHOWN].strip() for line in reversed(self._unread.decode(errors="replace").split("\n")))
        return next(filter(None, lines), "")

    def _receive_more(self, until: float) -> None:
        data = self.receive(max(0.0, until - time.monotonic()))
        self._over = not data
        self._unread += data

    def receive_line(self, timeout_s: float) -> Optional[Dict[str, Any]]:
        """Return the next JSON line, or None at the end.

        Raises:
          Silence: no whole line arrived in time; the next call continues with the part that arrived.
          Noise: the line is not a JSON object, or longer than ``LONGEST``.
        """
        until, searched = time.monotonic() + timeout_s, 0
        while True:
            end = self._unread.find(b"\n", searched)
            if end >= 0:
                line = self._unread[:end].decode(errors="replace")
                del self._unread[: end + 1]
                return _read(line)
            searched = len(self._unread)
            if self._over:
                return None
            if searched > LONGEST:
                self._unread.clear()
                raise Noise(f"expected a line of JSON, found {searched} bytes without a line end")
            self._receive_more(until)


def _read(line: str) -> Dict[str, Any]:
    """Return the values in a line, without control characters.

    Any program on the host may have written the line.
    """
    try:
        values = json.loads(line)
        values = clean(values) if may_hold_controls(line) else values
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise Noise(f"expected a line of JSON, found {line[:SHOWN]!r}")
    return values


class Host(ABC):
    """A machine of the cluster, which the launcher can reach.

    Args:
      before: commands for the shell that starts a program on the host.

    Attributes:
      shell: the name of that shell, for messages.
    """

    shell = "/bin/sh"

    def __init__(self, name: str, python: str, before: Sequence[str] = ()):
        self.name, self.python, self.before = name, python, tuple(before)
        self._kept: List[Tuple[float, Channel]] = []

    def keep(self, channel: Channel, stay_s: float) -> None:
        """Store a channel for the next verb; its program waits ``stay_s`` seconds for that verb."""
        self._kept.append((time.monotonic() + stay_s, channel))

    def take_kept(self) -> Optional[Channel]:
        """Remove and return a channel that ``keep`` stored; return None if no program waits any more."""
        while True:
            try:
                until, channel = self._kept.pop()
            except IndexError:  # no check before: another thread may take the last one
                return None
            if time.monotonic() < until:
                return channel
            channel.close()

    def look_up(self) -> None:
        """Read this machine's settings for the host; called before ``prepare``, for several hosts in parallel."""
        return

    def prepare(self) -> None:
        """Do the steps before a connection that cannot run in parallel; for example, ask for a passphrase.

        Called for one host after the other, before the hosts are connected in parallel. Raises HostProblem.
        """
        return

    @abstractmethod
    def connect(self) -> None:
        """Open the connection. Raises HostProblem."""

    @abstractmethod
    def open(self, argv: Sequence[str]) -> Channel:
        """Start a program on the host. Raises HostProblem."""

    @abstractmethod
    def dial(self, port: int) -> Any:
        """Return a connection to a port of the host's loopback interface. Raises HostProblem.

        The connection has the methods of a socket.
        """

    def refusal(self, complaint: str) -> Optional[HostProblem]:
        """Return the problem of a host on which the program did not start; None where the program started.

        Args:
          complaint: the text on stderr, from the program or from the command that should start it.
        """
        return None

    def close(self) -> None:
        """End the connection, and close every channel that ``keep`` stored."""
        while self._kept:
            self._kept.pop()[1].close()
