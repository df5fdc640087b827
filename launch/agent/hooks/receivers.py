"""The receivers of a run's events: what each try starts, and what it reads."""

import json
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Mapping, Sequence, Tuple
from urllib.parse import urlsplit

from cluster.protocol.command_template import fill
from launch.agent.hooks import post
from launch.agent.wire.run_request import HookRequest
from launch.status.hook_event import HookEvent
from launch.status.values import to_values


@dataclass(frozen=True)
class Receiver:
    """A command or a URL that gets one kind of event.

    Attributes:
      event: that kind.
      label: its name in messages, without a secret: ``on.failed (notify.sh)``.
      argv: the program of a try, and its arguments.
      env: the program's environment.
      folder: where it begins.
      given: what it reads beside the event, for a URL; empty for a command.
    """

    event: str
    label: str
    argv: Sequence[str] = field(repr=False)
    env: Mapping[str, str] = field(repr=False)
    folder: Path
    given: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def is_url(self) -> bool:
        """Return whether the program of a try is ``post``."""
        return bool(self.given)

    def line(self, event: HookEvent) -> bytes:
        """Return the JSON line that a try reads."""
        values = to_values(event)
        return json.dumps({**self.given, "event": values} if self.is_url else values).encode() + b"\n"


def receivers(
    hooks: Sequence[HookRequest], secrets: Mapping[str, str], folder: Path, environ: Mapping[str, str] = os.environ
) -> List[Receiver]:
    """Return the receivers of a request.

    Args:
      folder: where commands begin.
      environ: this process's environment.
    """
    return [_receiver(each, secrets, folder, environ) for each in hooks]


def _receiver(hook: HookRequest, secrets: Mapping[str, str], folder: Path, environ: Mapping[str, str]) -> Receiver:
    label = f"on.{hook.event} ({label_of(hook)})"
    if hook.url is None:
        program, *arguments = hook.command
        argv: Tuple[str, ...] = (os.path.expanduser(program), *arguments)
        return Receiver(hook.event, label, argv, {**environ, **secrets}, folder)
    headers: Dict[str, str] = {name: fill(text, secrets) for name, text in hook.headers.items()}
    given = {"url": fill(hook.url, secrets), "headers": headers}
    return Receiver(hook.event, label, (sys.executable, "-I", post.__file__), dict(environ), folder, given)


def label_of(hook: HookRequest) -> str:
    """Return a receiver's name in messages: its program, or its URL without anything that may be secret."""
    if hook.url is None:
        return os.path.basename(hook.command[0])
    if hook.url.startswith("{"):
        return hook.url.partition("}")[0] + "}"
    parts = urlsplit(hook.url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{'/…' if parts.path.strip('/') or parts.query else ''}"
