"""One try to deliver an event: a process that reads the event, with a time limit."""

import os
from typing import Collection, NamedTuple

from launch.agent.hooks import post
from launch.agent.hooks.receivers import Receiver
from launch.agent.linux import processes, program
from launch.agent.text.redaction import last_words
from launch.status.hook_event import HookEvent

TRY_S = 10.0  # the longest try


class Result(NamedTuple):
    """The end of a try: whether the event was taken, else why not, and whether another try may help."""

    taken: bool
    reason: str = ""
    again: bool = True


async def attempt(receiver: Receiver, event: HookEvent, secrets: Collection[str], within_s: float = TRY_S) -> Result:
    """Start the receiver's program, let it read the event, and return how it went.

    Args:
      secrets: values that a reason must not have.
    """
    try:
        ended = await program.run(receiver.argv, receiver.env, receiver.folder, within_s, receiver.line(event))
    except OSError as error:
        return Result(False, f"it cannot be started: {os.strerror(error.errno or 0)}")
    if ended.code is None:
        return Result(False, f"no end within {within_s:.0f} s")
    return judge(receiver.is_url, ended.code, last_words(ended.printed, secrets))


def judge(is_url: bool, code: int, line: str) -> Result:
    """Return the result of a try whose program has left with this exit code, and this last line."""
    if code == 0:
        return Result(True)
    if is_url:
        return Result(False, line or processes.describe_exit(code), again=code != post.NEVER)
    last = f"; its last line: {line}" if line else ""
    return Result(False, f"{processes.describe_exit(code)}{last}")
