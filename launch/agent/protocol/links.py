"""The connection between a member's agent and the lead's.

A member dials the lead. Both prove that they know the run's token, which the launcher sent to each over SSH. The lead
sends a nonce. The member answers with its own nonce and an HMAC-SHA256 over both nonces and its ``Greeting``; the lead
answers likewise. The token itself never crosses this connection. Both sides derive keys from the nonces and the token,
and seal every later line with those keys (``sealed``). So a recording of one connection is useless in another.

Each agent has an *incarnation*, a random text; a restarted agent has another one. Both sides send their incarnation in
the handshake, so each side detects whether its peer is still the same agent. A member also sends the incarnation of the
lead that ordered its tasks.

A member sends pings, and the lead sends them back. So a member knows the newest time at which the lead has certainly
received a message of this member. The lead cannot count the member's silence from an earlier time. So the time limit of
the member's tasks counts from this time. It includes any suspension of the member's machine, during which the lead
continues to count.

A connection carries messages, or one checkpoint (``COPIES``) that the member fetches or sends. So no message has to
wait behind a checkpoint: see ``launch.agent.checkpoints``.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
from typing import Any, Dict, NamedTuple, Tuple

from launch.agent.errors import AgentError
from launch.agent.linux.procfs import since_boot
from launch.agent.protocol.messages import Message, Ping, decode, encode
from launch.agent.protocol.sealed import PIECE, Keys, Sealed, read_line

HANDSHAKE_S = 10.0  # for the whole handshake
PING_SHARE = 0.1  # of the silence after which a host is lost: how often a member pings
QUIET_SHARE = 0.3  # and the part after which the member reconnects: TCP itself recovers late from a long cut
LIMIT = 16 * 1024 * 1024  # bytes of one message; before the proof, of one line: ``PIECE``
MESSAGES, COPIES = "messages", "copies"  # the purposes of a connection


class LinkError(AgentError):
    """The error that the other side has not proven its knowledge of the token, or is silent or gone."""


class Greeting(NamedTuple):
    """The introduction of one side of a connection.

    ``host`` is that side's host, and ``incarnation`` that of its agent. ``serves`` is the incarnation of the
    lead that ordered the host's tasks, if any. ``purpose`` is ``MESSAGES`` or ``COPIES``.
    """

    host: str
    incarnation: str
    serves: str = ""
    purpose: str = MESSAGES


class Link:
    """An authenticated connection for messages in both directions, with ``peer`` at the other end.

    ``heard_at`` is the time of the last message, on the event loop's clock. ``confirmed_at`` is the time at which this
    side sent the newest message that has certainly arrived, in seconds since this machine booted.
    """

    def __init__(self, streams: Sealed, peer: Greeting, confirmed_at: float = 0.0):
        self.streams, self.peer = streams, peer  # ``streams`` carries the checkpoint of a connection for ``COPIES``
        self.heard_at, self.confirmed_at = now(), confirmed_at
        self.over = False

    def send(self, message: Message) -> None:
        """Queue a message; ``receive`` notices a broken stream."""
        self.streams.write(encode(message))

    async def receive(self, timeout_s: float) -> Message:
        """Return the next message.

        Raises:
          LinkError: no message arrived for ``timeout_s``, or the stream ended.
        """
        try:
            line = await asyncio.wait_for(self.streams.read(LIMIT), timeout_s)
            self.heard_at = now()
            return self._take_ping(decode(line))
        except asyncio.TimeoutError:
            raise LinkError(f"no message for {timeout_s:.0f} s") from None
        except (OSError, EOFError, ValueError) as error:
            raise LinkError(str(error)) from error

    def _take_ping(self, message: Message) -> Message:
        if isinstance(message, Ping):
            self.confirmed_at = max(self.confirmed_at, message.echo)
            if message.at:
                self.send(Ping(echo=message.at))
        return message

    async def keep_alive(self, every_s: float) -> None:
        """Send a ping every ``every_s`` seconds until cancelled; ``receive`` reads the other side's echoes."""
        while True:
            self.send(Ping(at=since_boot()))
            await asyncio.sleep(every_s)

    def drop(self) -> None:
        """Close the stream at once; queued messages are lost."""
        self.over = True
        self.streams.writer.transport.abort()

    async def close(self) -> None:
        """Send the queued messages within a bounded time, and close the stream."""
        self.over = True
        try:
            await asyncio.wait_for(self.streams.writer.drain(), HANDSHAKE_S)
        except (OSError, asyncio.TimeoutError):
            self.streams.writer.transport.abort()
        self.streams.writer.close()


def now() -> float:
    """Return the time in seconds on the event loop's clock, which does not jump."""
    return asyncio.get_event_loop().time()


def _proof(token: str, *parts: str) -> str:
    return hmac.new(token.encode(), json.dumps(parts).encode(), hashlib.sha256).hexdigest()


def _equal(told: str, proof: str) -> bool:
    # As bytes: compare_digest accepts only ASCII text.
    return hmac.compare_digest(told.encode(errors="replace"), proof.encode())


def _keys(token: str, lead: str, member: str, incarnation: str, greeting: Greeting) -> Tuple[bytes, bytes]:
    """Return the keys that seal the lead's and the member's lines of one connection.

    The nonces were drawn for that connection.
    """
    said = [lead, member, incarnation, *greeting]
    ours, theirs = (_proof(token, f"lines of the {side}", *said) for side in ("lead", "member"))
    return bytes.fromhex(ours), bytes.fromhex(theirs)


async def _read(reader: asyncio.StreamReader) -> Dict[str, str]:
    values: Any = json.loads((await read_line(reader, PIECE)).decode())
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise ValueError("expected an object of texts")
    return values


def _write(writer: asyncio.StreamWriter, values: Dict[str, str]) -> None:
    writer.write(json.dumps(values).encode() + b"\n")


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, incarnation: str) -> Link:
    """Perform the lead's side of the handshake, and return the link.

    Raises:
      LinkError: the caller does not know the token, or took longer than ``HANDSHAKE_S``.
    """
    try:
        return await asyncio.wait_for(_answer(reader, writer, token, incarnation), HANDSHAKE_S)
    except _NO_HANDSHAKE as error:
        raise LinkError(_why(error)) from error


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, token: str, incarnation: str) -> Link:
    nonce = secrets.token_hex(16)
    _write(writer, {"nonce": nonce})
    theirs = await _read(reader)
    peer = Greeting(*(theirs[name] for name in Greeting._fields))
    if not _equal(theirs["proof"], _proof(token, "member", nonce, theirs["nonce"], *peer)):
        raise LinkError("the caller does not know the run's token")
    known = _proof(token, "lead", theirs["nonce"], nonce, incarnation)
    _write(writer, {"incarnation": incarnation, "proof": known})
    own, its = _keys(token, nonce, theirs["nonce"], incarnation, peer)
    return Link(Sealed(reader, writer, Keys(own, its)), peer)


async def dial(address: Tuple[str, int], me: Greeting, token: str, timeout_s: float) -> Link:
    """Connect to the lead at ``address``, perform the member's side of the handshake, and return the link.

    ``me`` introduces this side, and ``timeout_s`` bounds the time to connect.

    Raises:
      LinkError: the lead cannot be reached, or does not know the token.
    """
    where = f"{address[0]}:{address[1]}"
    try:
        opening = asyncio.open_connection(address[0], address[1], limit=PIECE)
        reader, writer = await asyncio.wait_for(opening, timeout_s)
    except (OSError, asyncio.TimeoutError) as error:
        raise LinkError(f"{where}: {error or 'no answer'}") from error
    try:
        return await asyncio.wait_for(_introduced(reader, writer, me, token), HANDSHAKE_S)
    except (LinkError, *_NO_HANDSHAKE) as error:
        writer.transport.abort()
        raise LinkError(f"{where}: {error if isinstance(error, LinkError) else _why(error)}") from error


async def _introduced(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, me: Greeting, token: str) -> Link:
    nonce = secrets.token_hex(16)
    theirs, spoke_at = (await _read(reader))["nonce"], since_boot()
    _write(writer, {**me._asdict(), "nonce": nonce, "proof": _proof(token, "member", theirs, nonce, *me)})
    known = await _read(reader)
    lead = known["incarnation"]
    if not _equal(known["proof"], _proof(token, "lead", nonce, theirs, lead)):
        raise LinkError("the process there is not the lead of this run")
    its, own = _keys(token, theirs, nonce, lead, me)
    return Link(Sealed(reader, writer, Keys(own, its)), Greeting("", lead), spoke_at)


# The errors that any caller can cause in a handshake; many brackets cause a RecursionError.
_NO_HANDSHAKE = (OSError, EOFError, ValueError, KeyError, TypeError, RecursionError, asyncio.TimeoutError)


def _why(error: BaseException) -> str:
    return f"no handshake: {error!r}"
