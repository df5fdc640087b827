"""Puts a world in the place of the machine that agents run on."""

import asyncio
import itertools
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, Mapping, get_type_hints
from unittest import mock

from launch.agent.tasks.task_log import LogTimes
from launch.agent.tasks.task_reports import Vitals
from tests.simulation.kernel import Kernel
from tests.simulation.names import NAMES

STATUS_S = 0.005  # of a processor's time, for a status: the next one comes the later


@contextmanager
def replaced(world: Any) -> Iterator[None]:
    """Replace every name inside; time and processes are those of the host whose agent runs now."""
    kernel, used = Kernel(world.here), itertools.count(0.0, STATUS_S)
    time = SimpleNamespace(
        time=world.wall, process_time=used.__next__, monotonic=lambda: asyncio.get_event_loop().time()
    )
    values = {
        **kernel.values,
        "os": kernel.os(),
        "time": time,
        "since_boot": world.since_boot,
        "secrets": SimpleNamespace(token_hex=world.token),
        "say": world.say,
        "say_once": world.say,
        "say_seldom": lambda kind, text: world.say(text),
        "temporary": SimpleNamespace(
            make=lambda task, attempt: None, forget=lambda task, attempt: None, freshen=lambda task: None
        ),
        "LogTimes": partial(LogTimes, clock=world.wall),
        "Vitals": partial(Vitals, lambda pid: None),
        "MemoryKills": _NoKills,
        "Traffic": _NoTraffic,
        "read_sign": lambda folder: None,
        "threading": SimpleNamespace(Thread=_Call),
        "get_type_hints": lru_cache(maxsize=None)(get_type_hints),
    }
    with ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(mock.patch(name, values[name.rsplit(".", 1)[1]], create=name.endswith(".open")))
        yield


class _Call:
    """In the place of a thread: its work is done as it starts, so that a seed has one history."""

    def __init__(self, target: Callable[[], None], **more: Any):
        self.start = target

    def join(self, timeout: float) -> None:
        pass

    def is_alive(self) -> bool:
        return False


class _NoKills:
    """Of memory there is enough."""

    def look(self, now: float) -> None:
        pass

    def took(self, pid: int, now: float) -> bool:
        return False


class _NoTraffic:
    """Nobody counts bytes."""

    def look(self, now: float, pids: Mapping[str, Any]) -> Dict[str, Any]:
        return {}
