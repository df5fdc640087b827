"""A child program that gets a text as its input, and has a time limit. The agent polls the program and never blocks."""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence

from launch.agent.linux import processes

LOOK_S = 0.05
GONE_S = 1.0  # for a killed process to end; a process that hangs in the kernel stays until the agent's end
KEPT = 2000  # bytes of the end of a program's output


class ProgramEnd(NamedTuple):
    """The result of a program that has ended.

    Attributes:
      code: the exit code; None if the program was killed after its time limit.
      printed: the last bytes of its output, at most ``KEPT``.
    """

    code: Optional[int]
    printed: bytes = b""


class Pipes:
    """The standard input and output of a program; neither the program nor the agent blocks on the other."""

    def __init__(self, process: "subprocess.Popen[bytes]", text: bytes):
        self._source, self._output, self._left, self.printed = process.stdin, process.stdout, text, b""
        for pipe in (self._source, self._output):
            os.set_blocking(_number(pipe), False)

    def move(self) -> None:
        """Write as much of the text as the program's input accepts, and read the output so far."""
        with contextlib.suppress(BlockingIOError):
            while self._left:
                self._left = self._left[self._write(self._left) :]
        if self._source is not None and not self._left:
            self._source.close()
            self._source = None
        with contextlib.suppress(BlockingIOError):
            for _ in range(100):  # a program that prints without end must wait
                data = os.read(_number(self._output), 65536)
                if not data:
                    break
                self.printed = (self.printed + data)[-KEPT:]

    def _write(self, text: bytes) -> int:
        """Write to the program's pipe; return the number of written bytes, or all for a closed pipe."""
        try:
            return os.write(_number(self._source), text)
        except BrokenPipeError:
            return len(text)

    def close(self) -> None:
        """Close both pipes."""
        for pipe in (self._source, self._output):
            if pipe is not None:
                pipe.close()


def _number(pipe: Any) -> int:
    number: int = pipe.fileno()
    return number


async def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    folder: Path,
    within_s: float,
    text: bytes = b"",
    began: Callable[[int], None] = lambda pid: None,
) -> ProgramEnd:
    """Start a program with ``text`` as its input, wait for its end, and return its result.

    The program is killed after ``within_s`` seconds. At its end, all processes of its group and session are killed.

    Args:
      began: a function to call with the program's pid, right after the start.

    Raises:
      OSError: the program cannot be started.
    """
    process = processes.spawn(argv, env, folder, subprocess.PIPE, subprocess.PIPE)
    began(process.pid)
    pipes = Pipes(process, text)

    def has_ended() -> bool:
        pipes.move()
        return processes.has_exited(process.pid)

    try:
        in_time = await _until(has_ended, within_s)
        pipes.move()
    finally:
        processes.signal_group(process.pid, signal.SIGKILL)
        await _until(lambda: process.poll() is not None, GONE_S)
        pipes.close()
    return ProgramEnd(process.returncode if in_time else None, pipes.printed)


async def _until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition; return whether it came true in time."""
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() >= until:
            return False
        await asyncio.sleep(LOOK_S)
    return True
