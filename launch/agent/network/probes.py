"""Dial the doors of other hosts, and classify those that cannot be reached from here.

A failure has one of these kinds:

    unresolved   the name has no address here
    loopback     the name means this very host, but the task is on another
    refused      the address answers that nothing listens, although our listener is up
    no-route     this host knows no way there
    timed-out    no answer: something drops the packets
    other        something answered that is not our listener
    wrong-host   our listener of another host answered: the address is not that host's
"""

import asyncio
import contextlib
import errno
import json
import os
from typing import Any, Dict, List, Mapping, Optional, Sequence

from launch.agent.network.resolver import Meaning, is_loopback
from launch.agent.network.target import Target

AT_ONCE = 200
LONGEST_LINE = 4096


class Failure(Exception):
    """A target cannot be reached; ``kind`` is one of this module's."""

    def __init__(self, kind: str, detail: str = ""):
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


def dial_all(
    targets: Sequence[Target], names: Mapping[str, Meaning], words: Sequence[str], here: Sequence[str], timeout_s: float
) -> List[Dict[str, str]]:
    """Return the targets that cannot be reached: [{"address", "host", "kind", "detail"}].

    Args:
      names: the addresses of each target's name on this host, or why the name has none.
      words: the word to send, and the word that our listener answers with.
      here: the names that this host has in the hosts file.
      timeout_s: for one target, from the first packet to the answer.
    """
    return asyncio.run(_dial_all(targets, names, words, here, timeout_s))


async def _dial_all(
    targets: Sequence[Target], names: Mapping[str, Meaning], words: Sequence[str], here: Sequence[str], timeout_s: float
) -> List[Dict[str, str]]:
    turn = asyncio.Semaphore(AT_ONCE)

    async def tried(target: Target) -> Optional[Failure]:
        async with turn:
            try:
                await _dial(target, names[target.name], words, here, timeout_s)
            except Failure as failure:
                return failure
        return None

    failures = await asyncio.gather(*map(tried, targets))
    return [
        {**target._asdict(), "kind": failure.kind, "detail": failure.detail}
        for target, failure in zip(targets, failures)
        if failure is not None
    ]


async def _dial(target: Target, meaning: Meaning, words: Sequence[str], here: Sequence[str], timeout_s: float) -> None:
    if isinstance(meaning, str):
        raise Failure("unresolved", meaning)
    if target.host not in here and is_loopback(meaning[0]):
        raise Failure("loopback", meaning[0])
    failures = []
    for address in meaning:  # as gRPC does: the first that takes the call
        try:
            said = await _said(address, target.port, words[0], timeout_s)
        except Failure as failure:
            failures.append(failure)
        else:
            return _recognise(said, target, words[1])
    raise failures[0]


async def _said(address: str, port: int, word: str, timeout_s: float) -> bytes:
    try:
        return await asyncio.wait_for(_call(address, port, word), timeout_s)
    except asyncio.TimeoutError:
        raise Failure("timed-out", f"{address}, {timeout_s:.0f} s") from None
    except ConnectionRefusedError:
        raise Failure("refused", address) from None
    except OSError as error:
        kind = "no-route" if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH) else "other"
        raise Failure(kind, f"{address}: {os.strerror(error.errno) if error.errno else error}") from None


async def _call(address: str, port: int, word: str) -> bytes:
    reader, writer = await asyncio.open_connection(address, port)
    try:
        writer.write(word.encode() + b"\n")
        return await reader.read(LONGEST_LINE)
    finally:
        with contextlib.suppress(OSError):
            writer.close()


def _recognise(said: bytes, target: Target, word: str) -> None:
    try:
        answer: Any = json.loads(said.decode())
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or answer.get("word") != word:
        shown = said.splitlines()[0][:60].decode(errors="replace") if said else "nothing, and hung up"
        raise Failure("other", shown)
    if (answer["host"], answer["port"]) != (target.host, target.port):
        raise Failure("wrong-host", f"{answer['host']} port {answer['port']}")
