"""The receivers of a run's events, and the tries to deliver an event to them.

Each try is a process with a time limit, which reads the event on its standard input.
"""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Collection, Dict, List, Mapping, NamedTuple, Sequence, Tuple
from urllib.parse import urlsplit

from cluster.protocol.command_template import fill
from cluster.protocol.env_values import word_with_home
from cluster.protocol.settings import Hook
from cluster.protocol.typed_json import to_values
from launch.agent.hooks import post
from launch.agent.linux import processes, program
from launch.agent.text import last_words
from launch.status.hook_event import HookEvent


@dataclass(frozen=True)
class Receiver:
    """A command or a URL that receives one kind of event.

    Attributes:
      event: the kind of event.
      label: the receiver's name in messages, without a secret: ``on.failed (notify.sh)``.
      argv: the program that each try starts, and its arguments.
      env: the program's environment.
      folder: the working folder of the program.
      given: for a URL, what the program reads beside the event: the URL and the headers; empty for a command.
    """

    event: str
    label: str
    argv: Sequence[str] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    folder: Path
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_url(self) -> bool:
        """Return whether the receiver is a URL, so that each try starts the program ``post``."""
        return bool(self.given)

    def line(self, event: HookEvent) -> bytes:
        """Return the JSON line that the program reads on its standard input."""
        values = to_values(event)
        return json.dumps({**self.given, "event": values} if self.is_url else values).encode() + b"\n"


def receivers(
    hooks: Sequence[Hook], secrets: Mapping[str, str], folder: Path, environ: Mapping[str, str] = os.environ
) -> List[Receiver]:
    """Return the receivers of the hooks in a request.

    Args:
      folder: the working folder of commands.
      environ: this process's environment.
    """
    return [_receiver(each, secrets, folder, environ) for each in hooks]


def _receiver(hook: Hook, secrets: Mapping[str, str], folder: Path, environ: Mapping[str, str]) -> Receiver:
    label = f"on.{hook.event} ({label_of(hook)})"
    if hook.url is None:
        program, *arguments = hook.command
        argv: Tuple[str, ...] = (os.path.expanduser(program), *map(word_with_home, arguments))
        return Receiver(hook.event, label, argv, {**environ, **secrets}, folder)
    headers: Dict[str, str] = {name: fill(text, secrets) for name, text in hook.headers.items()}
    given = {"url": fill(hook.url, secrets), "headers": headers}
    return Receiver(hook.event, label, (sys.executable, "-I", post.__file__), dict(environ), folder, given)


def label_of(hook: Hook) -> str:
    """Return a receiver's name in messages: its program, or its URL without any secret part."""
    if hook.url is None:
        return os.path.basename(hook.command[0])
    if hook.url.startswith("{"):
        return hook.url.partition("}")[0] + "}"
    parts = urlsplit(hook.url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{'/…' if parts.path.strip('/') or parts.query else ''}"


TRY_S = 10.0  # the longest try


class Result(NamedTuple):
    """The result of a try: whether the event was accepted; if not, the reason, and whether a retry may succeed."""

    taken: bool
    reason: str = ""
    again: bool = True


async def try_once(receiver: Receiver, event: HookEvent, secrets: Collection[str], within_s: float = TRY_S) -> Result:
    """Start the receiver's program, let it read the event, and return the result.

    Args:
      secrets: values that a reason must not contain.
    """
    try:
        ended = await program.run(receiver.argv, receiver.env, receiver.folder, within_s, receiver.line(event))
    except OSError as error:
        return Result(False, f"it cannot be started: {os.strerror(error.errno or 0)}")
    if ended.code is None:
        return Result(False, f"it did not end within {within_s:.0f} s")
    return judge_try(receiver.is_url, ended.code, last_words(ended.printed, secrets))


def judge_try(is_url: bool, code: int, line: str) -> Result:
    """Return the result of a try, from the exit code of its program and the last line that the program printed."""
    if code == 0:
        return Result(True)
    if is_url:
        return Result(False, line or processes.describe_exit(code), again=code != post.NEVER)
    last = f"; its last line: {line}" if line else ""
    return Result(False, f"{processes.describe_exit(code)}{last}")
