"""What a program may make of a file that its agent reads: everything that there is, and values drawn from a seed."""

import json
import os
import random
import socket
from pathlib import Path
from typing import Any, Callable, Dict

HUGE = 48 << 20  # bytes, without room on the disk

Plant = Callable[[Path], None]


def _fifo(path: Path) -> None:
    os.mkfifo(str(path))


def _fifo_behind_a_link(path: Path) -> None:
    beside = path.with_name(path.name + ".beside")
    os.mkfifo(str(beside))
    path.symlink_to(beside)


def _socket(path: Path) -> None:
    here = os.getcwd()
    os.chdir(str(path.parent))  # the path of a socket may not be long
    try:
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(path.name)
    finally:
        os.chdir(here)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(HUGE)


def _link_to(target: str) -> Plant:
    return lambda path: path.symlink_to(target)


def _content(data: bytes) -> Plant:
    def plant(path: Path) -> None:
        path.write_bytes(data)

    return plant


TEXTS: Dict[str, bytes] = {
    "empty": b"",
    "nul bytes": b"\0" * 512,
    "no UTF-8": b"\xff\xfe{}",
    "deep list": b"[" * 200_000,
    "deep object": b'{"a":' * 100_000,
    "deep in a field": b'{"step": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "long line": b"x" * 3_000_000,
    "many keys": json.dumps({str(number): number for number in range(50_000)}).encode(),
    "null": b"null",
    "a number": b"1" * 5000,
    "escapes": b'{"succeeded": false, "cause": "\\u001b[2J\\u001b]0;owned\\u0007 \\ud800 \\u0000"}',
}
FILES: Dict[str, Plant] = {
    "FIFO": _fifo,
    "FIFO behind a link": _fifo_behind_a_link,
    "socket": _socket,
    "folder": lambda path: path.mkdir(),
    "huge": _huge,
    "link to zeros": _link_to("/dev/zero"),
    "link to itself": lambda path: path.symlink_to(path.name),
    "link to nothing": _link_to("/nowhere/at/all"),
    "terminal": _link_to("/dev/tty"),
    "of mode 000": lambda path: os.close(os.open(str(path), os.O_CREAT | os.O_WRONLY, 0)),
    **{f"text: {name}": _content(data) for name, data in TEXTS.items()},
}
_VALUES = [
    "null", "true", "-1", "0", "1e308", "1e400", "-1e400", "NaN", "Infinity", "1" + "0" * 400, '""', '"\\u0000"',
    '"\\ud800"', '"\\u001b[2J"', '"' + "x" * 10_000 + '"', "[]", "{}", '{"a": NaN}', '{"a": []}', '{"\\u001b": 1}',
    "9223372036854775807", "-9223372036854775809", '"step"', "[[[[[]]]]]", "1.5", '"/nowhere/model-1"',
]  # fmt: skip


def nearly(record: Dict[str, Any], seed: int) -> bytes:
    """A record in which some values are others, and some are missing or unknown."""
    draw = random.Random(seed)
    pairs = [(name, json.dumps(value)) for name, value in record.items() if draw.random() > 0.05]
    changed = {draw.randrange(len(pairs)) for _ in range(draw.choice([1, 1, 2, 5]))}
    texts = [(name, draw.choice(_VALUES) if at in changed else value) for at, (name, value) in enumerate(pairs)]
    if draw.random() < 0.1:
        texts.append(("unknown", draw.choice(_VALUES)))
    return ("{" + ", ".join(f"{json.dumps(name)}: {value}" for name, value in texts) + "}").encode()
