"""The connection between a member's agent and the lead's.

A member dials the lead. Both prove that they know the run's token, which the launcher
gave each of them over SSH: the lead sends a nonce, the member answers with its own
nonce and an HMAC-SHA256 over both nonces and its host; the lead answers likewise. The
token itself never travels here.

Each agent has an *incarnation*, a random text that names one life of it, and both sides
tell theirs in the handshake: so each knows whether it speaks with the one it knew. A
member also tells whose tasks it has, the incarnation of the lead that ordered them.

A member pings and the lead echoes. So a member knows until when the lead has surely heard
it, which is what its tasks may live by: the lead cannot have counted a silence from any
earlier moment.

A connection is for messages, or for one checkpoint (``COPIES``), which the member then
fetches or brings on it, so that no message has to wait behind it: see ``copying``.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
from typing import Any, Dict, NamedTuple, Tuple

from launch.agent.copying import Streams
from launch.agent.messages import Message, Ping, decode, encode

HANDSHAKE_S = 10.0
PING_SHARE = 0.1  # of the silence after which a host is lost: how often a member pings
QUIET_SHARE = 0.3  # and after how much of it a link is made anew: TCP itself comes back late from a long cut
LIMIT = 16 * 1024 * 1024  # bytes of one line
MESSAGES, COPIES = "messages", "copies"  # what a connection is for
COPY_LIMIT = 1024 * 1024  # bytes of a checkpoint, twice as many of which wait in memory


class LinkError(Exception):
    """The other side is not who it should be, or did not answer in time."""


class Greeting(NamedTuple):
    """Who speaks: the host, which life of its agent, which life of a lead ordered its tasks, if any; and what for."""

    host: str
    incarnation: str
    serves: str = ""
    purpose: str = MESSAGES


class Link:
    """Messages both ways over one authenticated stream, with ``peer`` at the other end.

    ``heard_at``: when the last message came. ``confirmed_at``: the newest moment at which we
    spoke and the other side is known to have heard it. Both are times of the event loop.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: Greeting, confirmed_at: float = 0.0
    ):
        self._reader, self._writer, self.peer = reader, writer, peer
        self.heard_at, self.confirmed_at = _now(), confirmed_at
        self.over = False

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
            self.heard_at = _now()
            return self._heed(decode(line))
        except asyncio.TimeoutError:
            raise LinkError(f"nothing heard for {timeout_s:.0f} s") from None
        except (OSError, ValueError) as error:
            raise LinkError(str(error)) from error

    def _heed(self, message: Message) -> Message:
        if isinstance(message, Ping):
            self.confirmed_at = max(self.confirmed_at, message.echo)
            if message.at:
                self.send(Ping(echo=message.at))
        return message

    @property
    def streams(self) -> Streams:
        """What carries a checkpoint, where this connection is for one."""
        return Streams(self._reader, self._writer)

    async def keep_alive(self, every_s: float) -> None:
        """Pings until cancelled; the other side's echoes are heard by ``receive``."""
        while True:
            self.send(Ping(at=_now()))
            await asyncio.sleep(every_s)

    def drop(self) -> None:
        """Closes at once; what is queued is lost."""
        self.over = True
        self._writer.transport.abort()

    async def close(self) -> None:
        """Sends what is queued, bounded in time, and closes."""
        self.over = True
        try:
            await asyncio.wait_for(self._writer.drain(), HANDSHAKE_S)
        except (OSError, asyncio.TimeoutError):
            self._writer.transport.abort()
        self._writer.close()


def _now() -> float:
    return asyncio.get_event_loop().time()


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


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, incarnation: str) -> Link:
    """The lead's side of the handshake.

    Raises:
      LinkError: the caller does not know the token.
    """
    nonce = secrets.token_hex(16)
    try:
        _write(writer, {"nonce": nonce})
        theirs = await _read(reader)
        peer = Greeting(*(str(theirs[name]) for name in Greeting._fields))
        if not _equal(str(theirs["proof"]), _proof(token, "member", nonce, theirs["nonce"], *peer)):
            raise LinkError("a caller without the run's token")
        known = _proof(token, "lead", theirs["nonce"], nonce, incarnation)
        _write(writer, {"incarnation": incarnation, "proof": known})
    except (OSError, ValueError, KeyError, TypeError, asyncio.TimeoutError) as error:
        raise LinkError(f"no handshake: {error!r}") from error
    return Link(reader, writer, peer)


async def dial(address: Tuple[str, int], me: Greeting, token: str, timeout_s: float) -> Link:
    """The member's side: connects to the lead and proves who it is.

    Raises:
      LinkError: the lead cannot be reached, or does not know the token.
    """
    nonce = secrets.token_hex(16)
    try:
        limit = LIMIT if me.purpose == MESSAGES else COPY_LIMIT
        opening = asyncio.open_connection(address[0], address[1], limit=limit)
        reader, writer = await asyncio.wait_for(opening, timeout_s)
    except (OSError, asyncio.TimeoutError) as error:
        raise LinkError(f"{address[0]}:{address[1]}: {error or 'no answer'}") from error
    try:
        theirs, spoke_at = str((await _read(reader))["nonce"]), _now()
        _write(writer, {**me._asdict(), "nonce": nonce, "proof": _proof(token, "member", theirs, nonce, *me)})
        known = await _read(reader)
        lead, proof = str(known["incarnation"]), str(known["proof"])
    except (OSError, ValueError, KeyError, asyncio.TimeoutError) as error:
        writer.close()
        raise LinkError(f"{address[0]}:{address[1]}: no handshake: {error!r}") from error
    if not _equal(proof, _proof(token, "lead", nonce, theirs, lead)):
        writer.close()
        raise LinkError(f"{address[0]}:{address[1]}: not the lead of this run")
    return Link(reader, writer, Greeting("", lead), spoke_at)
