"""The connection between a member's agent and the lead's.

A member dials the lead. Both prove that they know the run's token, which the launcher
gave each of them over SSH: the lead sends a nonce, the member answers with its own
nonce and an HMAC-SHA256 over both nonces and its host; the lead answers likewise. The
token itself never travels here.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
from typing import Any, Dict, Tuple

from launch.agent.messages import Message, Ping, decode, encode

HANDSHAKE_S = 10.0
PING_S = 2.0
LIMIT = 16 * 1024 * 1024  # bytes of one line


class LinkError(Exception):
    """The other side is not who it should be, or did not answer in time."""


class Link:
    """Messages both ways over one authenticated stream. ``heard_at``: when the last one came."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str):
        self._reader, self._writer, self.host = reader, writer, host
        self.heard_at = asyncio.get_event_loop().time()

    def send(self, message: Message) -> None:
        """Queues a message; a broken stream is noticed by ``receive``."""
        if not self._writer.is_closing():
            self._writer.write(encode(message))

    async def receive(self, timeout_s: float) -> Message:
        """The next message.

        Raises:
          LinkError: nothing came for ``timeout_s``, or the stream ended.
        """
        try:
            line = await asyncio.wait_for(self._reader.readline(), timeout_s)
            if not line:
                raise LinkError("the connection was closed")
            self.heard_at = asyncio.get_event_loop().time()
            return decode(line)
        except asyncio.TimeoutError:
            raise LinkError(f"nothing heard for {timeout_s:.0f} s") from None
        except (OSError, ValueError) as error:
            raise LinkError(str(error)) from error

    async def keep_alive(self, patience_s: float) -> None:
        """Pings, until cancelled, often enough for another side that waits ``patience_s``."""
        while True:
            self.send(Ping())
            await asyncio.sleep(min(PING_S, patience_s / 4))

    async def close(self) -> None:
        """Sends what is queued, bounded in time, and closes."""
        try:
            await asyncio.wait_for(self._writer.drain(), HANDSHAKE_S)
        except (OSError, asyncio.TimeoutError):
            self._writer.transport.abort()
        self._writer.close()


def _proof(token: str, *parts: str) -> str:
    return hmac.new(token.encode(), json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def _equal(told: str, proof: str) -> bool:
    # As bytes: of texts, compare_digest takes only those in ASCII.
    return hmac.compare_digest(told.encode(errors="replace"), proof.encode())


async def _read(reader: asyncio.StreamReader) -> Dict[str, Any]:
    line = await asyncio.wait_for(reader.readline(), HANDSHAKE_S)
    greeting = json.loads(line.decode())
    if not isinstance(greeting, dict):
        raise ValueError("no greeting")
    return greeting


def _write(writer: asyncio.StreamWriter, values: Dict[str, str]) -> None:
    writer.write(json.dumps(values).encode() + b"\n")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str) -> Link:
    """The lead's side of the handshake.

    Raises:
      LinkError: the caller does not know the token.
    """
    nonce = secrets.token_hex(16)
    try:
        _write(writer, {"nonce": nonce})
        theirs = await _read(reader)
        host = str(theirs["host"])
        if not _equal(str(theirs["proof"]), _proof(token, "member", nonce, theirs["nonce"], host)):
            raise LinkError("a caller without the run's token")
        _write(writer, {"proof": _proof(token, "lead", theirs["nonce"], nonce)})
    except (OSError, ValueError, KeyError, TypeError, asyncio.TimeoutError) as error:
        raise LinkError(f"no handshake: {error!r}") from error
    return Link(reader, writer, host)


async def dial(address: Tuple[str, int], host: str, token: str, timeout_s: float) -> Link:
    """The member's side: connects to the lead and proves who it is.

    Raises:
      LinkError: the lead cannot be reached, or does not know the token.
    """
    nonce = secrets.token_hex(16)
    try:
        opening = asyncio.open_connection(address[0], address[1], limit=LIMIT)
        reader, writer = await asyncio.wait_for(opening, timeout_s)
    except (OSError, asyncio.TimeoutError) as error:
        raise LinkError(f"{address[0]}:{address[1]}: {error or 'no answer'}") from error
    try:
        theirs = str((await _read(reader))["nonce"])
        _write(writer, {"host": host, "nonce": nonce, "proof": _proof(token, "member", theirs, nonce, host)})
        known = str((await _read(reader))["proof"])
    except (OSError, ValueError, KeyError, asyncio.TimeoutError) as error:
        writer.close()
        raise LinkError(f"{address[0]}:{address[1]}: no handshake: {error!r}") from error
    if not _equal(known, _proof(token, "lead", nonce, theirs)):
        writer.close()
        raise LinkError(f"{address[0]}:{address[1]}: not the lead of this run")
    return Link(reader, writer, host)
