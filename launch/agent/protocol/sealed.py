"""Lines that only the other end of one connection can have written, each once and in order.

Both ends have two keys that are valid for this connection alone, one for each direction. A line begins with an
HMAC-SHA256 over the line's number and content. So a line that was forged, changed, repeated, left out or taken from
another connection ends the connection. Lines are not encrypted: anybody on the network can read the lines.
"""

import asyncio
import hmac
from typing import NamedTuple

PIECE = 4096  # bytes that our readers buffer ahead of a request; also the longest line before a proof
_HASH = "sha256"


class Keys(NamedTuple):
    """The keys of one connection: one for sending, and one for receiving."""

    sends: bytes
    receives: bytes


class BadSeal(ValueError):
    """The error that a line is not the next one that the other end has written on this connection."""


class Sealed:
    """One end of a connection whose lines are authenticated.

    Between lines, ``reader`` and ``writer`` may carry raw bytes that a line authenticates.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, keys: Keys):
        self.reader, self.writer, self._keys = reader, writer, keys
        self._sent = self._received = 0

    def write(self, line: bytes) -> None:
        """Queue ``line``, which has no newline, unless the connection is being closed."""
        if not self.writer.is_closing():
            self.writer.write(_seal(self._keys.sends, self._sent, line) + b" " + line + b"\n")
            self._sent += 1

    async def read(self, limit: int) -> bytes:
        """Return the next line, without its seal and its newline; seal and line have at most ``limit`` bytes.

        Raises:
          EOFError: the connection was closed.
          ValueError: the line is too long, or a ``BadSeal``.
          OSError: the connection broke.
        """
        seal, _, line = (await read_line(self.reader, limit)).partition(b" ")
        if not hmac.compare_digest(seal, _seal(self._keys.receives, self._received, line)):
            raise BadSeal("expected the other side's next message, found one that is forged, repeated or changed")
        self._received += 1
        return line


def _seal(key: bytes, number: int, line: bytes) -> bytes:
    return hmac.digest(key, number.to_bytes(8, "big") + line, _HASH).hex().encode()


async def read_line(reader: asyncio.StreamReader, limit: int) -> bytes:
    """Return the next line without its newline; the line may be longer than the limit of ``reader``.

    Raises:
      EOFError: the connection was closed before the line's end.
      ValueError: the line is longer than ``limit`` bytes.
      OSError: the connection broke.
    """
    pieces, size = [], 0
    while True:
        try:
            pieces.append(await reader.readuntil(b"\n"))
            break
        except asyncio.LimitOverrunError as overrun:
            pieces.append(await reader.readexactly(overrun.consumed))
        except asyncio.IncompleteReadError:
            raise EOFError("the connection was closed") from None
        size += len(pieces[-1])
        if size > limit:
            raise ValueError(f"expected a line of at most {limit} bytes, found a longer one")
    line = b"".join(pieces)
    if len(line) > limit:
        raise ValueError(f"expected a line of at most {limit} bytes, found {len(line)}")
    return line[:-1]
