"""What runs on a host for a launcher: one program for each connection, which runs the product's verbs.

sshd is imitated here, and of ``launch.agent.bootstrap`` the loop.
"""

import json
import os
import sys
from types import SimpleNamespace
from typing import Any, Callable

from launch.agent.__main__ import run
from launch.hosts.rpc import MARK, RECEIVER
from tests.simulation.launcher import code
from tests.simulation.launcher.baton import Gone, wait
from tests.simulation.launcher.programs import Program, me
from tests.simulation.launcher.streams import Pipe, Stream

GREETING_S = 60.0
START_S = 0.1  # of a Python


def accept(machine: Any) -> Callable[[], Stream]:
    """Return what the port of a host's sshd does with a caller."""

    def accepted(stream: Stream) -> None:
        program = Program(
            machine.world, f"a program on {machine.host}", machine.host, machine.clock, lambda: _serve(stream), machine
        )
        program.files = {0: stream, 1: stream}
        program.closing.append(stream.close)
        machine.programs.append(program)

    return lambda: Stream(accepted)


def _serve(stream: Stream) -> None:
    wait(START_S)
    _write(1, MARK)
    _exactly(stream, len(RECEIVER))
    patience = GREETING_S
    while patience and stream.wait(patience):
        greeting = json.loads(_line(stream))
        has_it = code.has_code(me().loop.machine, greeting, OS, _tell)
        if not has_it or not code.runs(me().loop.machine):
            return  # Python ends with a traceback
        run(greeting["verb"])
        patience = greeting.get("stay", 0.0)


def _tell(values: Any) -> None:
    _write(1, json.dumps(values).encode() + b"\n")


def _exactly(stream: Stream, size: int) -> bytes:
    data = b""
    while len(data) < size:
        if not stream.wait(GREETING_S):
            raise Gone
        more = _read(0, size - len(data))
        if not more:
            raise Gone
        data += more
    return data


def _line(stream: Stream) -> str:
    data = b""
    while not data.endswith(b"\n"):
        data += _exactly(stream, 1)
    return data.decode()


# -- what a verb asks of its process


def _read(number: int, size: int) -> bytes:
    file = me().files[number]
    file.wait(float("inf"))
    try:
        data: bytes = file.read(size)
    except ConnectionError:  # sshd has it: its program reads the end of a pipe
        return b""
    return data


def _write(number: int, data: bytes) -> int:
    try:
        me().files[number].write(data)
    except OSError:
        raise BrokenPipeError(32, "Broken pipe") from None
    return len(data)


def _pipe() -> Any:
    program, pipe = me(), Pipe()
    first = max([2, *program.files]) + 1
    program.files.update({first: pipe, first + 1: pipe})
    return first, first + 1


def _exit(code: int) -> None:
    me().end(code)
    raise Gone


def readable(file: Any, seconds: Any) -> bool:
    """Wait until something can be read, in the place of ``launch.agent.linux.open_files.readable``."""
    found = me().files[file] if isinstance(file, int) else file
    ready: bool = found.wait(float("inf") if seconds is None else seconds)
    return ready


OS = SimpleNamespace(
    read=_read, write=_write, pipe=_pipe, close=lambda number: None, fdopen=lambda number, mode: me().files[number],
    getpid=lambda: me().pid, _exit=_exit, killpg=lambda pid, number: None, waitpid=lambda pid, options: (pid or -1, 0),
    WNOHANG=os.WNOHANG, path=os.path,
)  # fmt: skip
SYS = SimpleNamespace(
    stdout=SimpleNamespace(write=lambda text: _write(1, text.encode()), flush=lambda: None), exit=sys.exit
)
