"""Bring a checkpoint from its holder to the host of a resumed run's chief, before the run starts.

The launcher has the chief's host ``take`` the checkpoint: this host listens where the run's lead will, so where the
other hosts can reach it. Then the holder may ``give``: it dials, and both hosts prove that they know a token which the
launcher made for this. The bytes go from host to host; the launcher only receives their number so far.
"""

import asyncio
import time
from typing import Any, Callable, Dict

from cluster.protocol.addresses import host_of, port_of
from launch.agent.checkpoints import resume, transfer
from launch.agent.network import firewall
from launch.agent.protocol import links
from launch.agent.protocol.gate import Gate
from launch.agent.wire.verb_requests import HandoverRequest

TELL_S = 2.0  # between two words on how far it is
DIAL_S = 10.0
CALL_S = 60.0  # for the holder to dial

Tell = Callable[[Dict[str, Any]], None]


def take(request: HandoverRequest, tell: Tell) -> None:
    """Receive a checkpoint from its holder, which dials this host.

    ``tell`` gets {"listening": True}, then every ``TELL_S`` or later {"bytes": so far}. Last comes {"taken": step} or
    {"error": why}.
    """
    try:
        peers = None if request.guard is None else request.peers
        with firewall.standing(request.run.run or "", [port_of(request.address)], peers):
            asyncio.run(_reported(_take(request, tell), tell))
    except firewall.Unguarded as error:
        tell({"error": str(error)})


def give(request: HandoverRequest, tell: Tell) -> None:
    """Send a checkpoint to another host; report {"given": step} or {"error": why}.

    ``tell`` gets {"bytes": so far} before, every ``TELL_S`` or later.
    """
    asyncio.run(_reported(_give(request, tell), tell))


async def _reported(work: Any, tell: Tell) -> None:
    try:
        await work
    except (OSError, ValueError, links.LinkError, transfer.CopyError) as error:
        tell({"error": str(error)})


async def _take(request: HandoverRequest, tell: Tell) -> None:
    calls: asyncio.Queue[Any] = asyncio.Queue()
    gate = Gate(request.token, "", 1, calls.put)
    await gate.open(port_of(request.address))
    tell({"listening": True})
    try:
        link = await asyncio.wait_for(calls.get(), CALL_S)
    except asyncio.TimeoutError:
        raise ValueError(f"the checkpoint's holder has not reached {request.address} in {CALL_S:.0f} s") from None
    finally:
        gate.close()
    place, moved = resume.receive(request), _Moved(tell)
    try:
        step = await transfer.receive(link.streams, place, request.keep, moved)
    finally:
        await link.close()
    tell({"taken": step})


async def _give(request: HandoverRequest, tell: Tell) -> None:
    checkpoint = resume.source(request)
    address = host_of(request.address), port_of(request.address)
    me = links.Greeting(request.run.host, "", purpose=links.COPIES)
    link = await links.dial(address, me, request.token, DIAL_S)
    try:
        await transfer.send(link.streams, checkpoint, _Moved(tell))
    finally:
        await link.close()
    tell({"given": checkpoint.step})


class _Moved:
    """Report the number of bytes that have moved, as a sign that the copy goes on."""

    def __init__(self, tell: Tell):
        self._tell, self._bytes, self._sent_at = tell, 0, time.monotonic()

    def __call__(self, moved: int) -> None:
        self._bytes += moved
        if time.monotonic() - self._sent_at > TELL_S:
            self._sent_at = time.monotonic()
            self._tell({"bytes": self._bytes})
