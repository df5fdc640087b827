"""Lines between two ends of a connection: whatever is done to them on their way, none is taken that was not sent."""

import asyncio
import random
from typing import Any, Callable, List, Tuple

import pytest

from launch.agent.protocol.sealed import PIECE, BadSeal, Keys, Sealed, read_line

LIMIT = 1 << 20
KEYS = Keys(b"lead's", b"member's")
Meddle = Callable[[random.Random, List[bytes]], List[bytes]]


class Kept:
    """A writer that keeps what is written, line by line."""

    def __init__(self) -> None:
        self.lines: List[bytes] = []

    def write(self, data: bytes) -> None:
        self.lines.append(data)

    def is_closing(self) -> bool:
        return False


def sent(lines: List[bytes], keys: Keys = KEYS) -> List[bytes]:
    """What goes over the network for these lines."""
    reader: Any = None  # nobody answers
    writer: Any = Kept()
    end = Sealed(reader, writer, keys)
    for line in lines:
        end.write(line)
    return list(writer.lines)


def received(data: List[bytes]) -> Tuple[List[bytes], str]:
    """The lines that the other end takes of it, and what ends them."""

    async def read() -> Tuple[List[bytes], str]:
        reader, taken = asyncio.StreamReader(limit=PIECE), []
        reader.feed_data(b"".join(data))
        reader.feed_eof()
        end = Sealed(reader, Kept(), Keys(KEYS.receives, KEYS.sends))  # type: ignore[arg-type]
        try:
            while True:
                taken.append(await end.read(LIMIT))
        except (EOFError, ValueError) as error:
            return taken, type(error).__name__

    return asyncio.run(read())


def lines(draw: random.Random) -> List[bytes]:
    sizes = [draw.choice([0, 1, 60, 64, 65, PIECE - 66, PIECE, 5 * PIECE]) for _ in range(draw.randrange(2, 8))]
    return [bytes(draw.choice(b'{"a": 1}xyz ') for _ in range(size)) for size in sizes]


def changed(draw: random.Random, data: List[bytes]) -> List[bytes]:
    number = draw.randrange(len(data))
    at = draw.randrange(len(data[number]))
    return [*data[:number], data[number][:at] + b"#" + data[number][at + 1 :], *data[number + 1 :]]


def repeated(draw: random.Random, data: List[bytes]) -> List[bytes]:
    number = draw.randrange(len(data))
    return [*data[: number + 1], data[draw.randrange(number + 1)], *data[number + 1 :]]


def left_out(draw: random.Random, data: List[bytes]) -> List[bytes]:
    number = draw.randrange(len(data) - 1)
    return [*data[:number], *data[number + 1 :]]


def swapped(draw: random.Random, data: List[bytes]) -> List[bytes]:
    number = draw.randrange(len(data) - 1)
    return [*data[:number], data[number + 1], data[number], *data[number + 2 :]]


def inserted(draw: random.Random, data: List[bytes]) -> List[bytes]:
    number = draw.randrange(len(data))
    seal = data[0][:64] if draw.random() < 0.5 else b"0" * 64
    return [*data[:number], seal + b' {"message": "End"}\n', *data[number:]]


def reflected(draw: random.Random, data: List[bytes]) -> List[bytes]:
    """What the receiver itself has sent comes back to it."""
    return sent([b"mine"], Keys(KEYS.receives, KEYS.sends)) + data


def of_another_connection(draw: random.Random, data: List[bytes]) -> List[bytes]:
    return sent([b"mine"], Keys(b"another", b"")) + data


@pytest.mark.parametrize("seed", range(20))
def test_lines_arrive_as_they_were_sent(seed: int) -> None:
    these = lines(random.Random(seed))
    assert received(sent(these)) == (these, "EOFError")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "meddle", [changed, repeated, left_out, swapped, inserted, reflected, of_another_connection],
    ids=lambda meddle: meddle.__name__,
)  # fmt: skip
def test_nothing_is_taken_that_was_not_sent_here_and_now(meddle: Meddle, seed: int) -> None:
    draw = random.Random(seed)
    these = lines(draw)
    taken, end = received(meddle(draw, sent(these)))
    assert taken == these[: len(taken)] and len(taken) < len(these) + (meddle is repeated)
    assert end in ("BadSeal", "EOFError") and issubclass(BadSeal, ValueError)


@pytest.mark.parametrize("size", [PIECE, PIECE + 1, 10 * PIECE])
def test_a_line_is_refused_once_it_is_longer_than_it_may_be(size: int) -> None:
    async def read(data: bytes, limit: int) -> bytes:
        reader = asyncio.StreamReader(limit=PIECE)
        reader.feed_data(data)
        return await read_line(reader, limit)

    assert asyncio.run(read(b"x" * (size - 1) + b"\n", size)) == b"x" * (size - 1)
    for data in (b"x" * size + b"\n", b"x" * (size + 1)):
        with pytest.raises(ValueError, match=f"expected a line of at most {size} bytes"):
            asyncio.run(read(data, size))
