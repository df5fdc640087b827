"""One try to deliver an event: a process that reads the event, with a time limit."""

import asyncio
import contextlib
import os
import signal
import subprocess
from typing import Any, Callable, Collection, NamedTuple, Optional

from launch.agent.hooks import post
from launch.agent.hooks.receivers import Receiver
from launch.agent.linux import processes
from launch.agent.protocol.links import now
from launch.agent.text.plain_text import plain
from launch.agent.text.redaction import mask
from launch.status.hook_event import HookEvent

TRY_S = 10.0  # the longest try
LOOK_S = 0.05
GONE_S = 1.0  # for a killed process to be gone; one that hangs in the kernel is left to the agent's end
KEPT = 2000  # bytes of the end of what a program prints
LONGEST = 200  # characters of its last line


class Result(NamedTuple):
    """The end of a try: whether the event was taken, else why not, and whether another try may help."""

    taken: bool
    reason: str = ""
    again: bool = True


class Pipes:
    """The standard input and output of a program, which neither waits for the agent nor keeps the agent waiting."""

    def __init__(self, process: "subprocess.Popen[bytes]", text: bytes):
        self._source, self._output, self._left, self._printed = process.stdin, process.stdout, text, b""
        for pipe in (self._source, self._output):
            os.set_blocking(_number(pipe), False)

    def move(self) -> None:
        """Write what the program can take, and read what it has printed."""
        with contextlib.suppress(BlockingIOError):
            while self._left:
                self._left = self._left[self._write(self._left) :]
        if self._source is not None and not self._left:
            self._source.close()
            self._source = None
        with contextlib.suppress(BlockingIOError):
            for _ in range(100):  # a program that prints without end waits for its turn
                data = os.read(_number(self._output), 65536)
                if not data:
                    break
                self._printed = (self._printed + data)[-KEPT:]

    def _write(self, text: bytes) -> int:
        """Return the number of bytes that the program's pipe takes; all where it does not read."""
        try:
            return os.write(_number(self._source), text)
        except BrokenPipeError:
            return len(text)

    @property
    def last_line(self) -> str:
        """Return the last line that is not empty, as a terminal shows it."""
        lines = [plain(line).strip() for line in self._printed.decode(errors="replace").splitlines()]
        return next((line for line in reversed(lines) if line), "")

    def close(self) -> None:
        """Close both pipes."""
        for pipe in (self._source, self._output):
            if pipe is not None:
                pipe.close()


def _number(pipe: Any) -> int:
    number: int = pipe.fileno()
    return number


async def attempt(receiver: Receiver, event: HookEvent, secrets: Collection[str], within_s: float = TRY_S) -> Result:
    """Start the receiver's program, let it read the event, and return how it went.

    Args:
      secrets: values that a reason must not have.
    """
    try:
        process = processes.spawn(receiver.argv, receiver.env, receiver.folder, subprocess.PIPE, subprocess.PIPE)
    except OSError as error:
        return Result(False, f"it cannot be started: {os.strerror(error.errno or 0)}")
    pipes = Pipes(process, receiver.line(event))

    def has_ended() -> bool:
        pipes.move()
        return processes.has_exited(process.pid)

    try:
        ended = await _until(has_ended, within_s)
        pipes.move()
    finally:
        processes.signal_group(process.pid, signal.SIGKILL)  # also what it has started
        await _until(lambda: process.poll() is not None, GONE_S)
        pipes.close()
    line = mask(pipes.last_line, secrets)[:LONGEST]
    return (
        judge(receiver.is_url, process.returncode, line) if ended else Result(False, f"no end within {within_s:.0f} s")
    )


async def _until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition; return whether it came true in time."""
    until = now() + seconds
    while not condition():
        if now() >= until:
            return False
        await asyncio.sleep(LOOK_S)
    return True


def judge(is_url: bool, code: Optional[int], line: str) -> Result:
    """Return the result of a try whose program has left with this exit code, and this last line."""
    if code == 0:
        return Result(True)
    if is_url:
        return Result(False, line or processes.describe_exit(code), again=code != post.NEVER)
    last = f"; its last line: {line}" if line else ""
    return Result(False, f"{processes.describe_exit(code)}{last}")
