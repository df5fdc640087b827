"""Puts a world in the place of the machine that agents run on."""

import asyncio
import itertools
import json
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, get_type_hints
from unittest import mock

from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.task_log import LogTimes
from launch.agent.tasks.task_reports import Vitals
from tests.simulation.disks import Disk
from tests.simulation.kernel import Kernel
from tests.simulation.names import NAMES

STATUS_S = 0.005  # of a processor's time, for a status: the next one comes the later


class Folder(RunFolder):
    """A run's folder on a host whose files are in memory."""

    def __init__(self, run: str, host: str, disk: Disk):
        super().__init__(Path("/simulated") / host, run, host)
        self._disk = disk
        self.task = lru_cache(maxsize=None)(super().task)  # type: ignore[method-assign]  # asked for at every poll

    def write(self, name: str, values: Mapping[str, Any], durable: bool = False) -> None:
        self._disk.write(str(self.own / name), json.dumps(values), durable)

    def read(self, name: str) -> Optional[Dict[str, Any]]:
        try:
            return json.loads(self._disk.read(str(self.own / name)))  # type: ignore[no-any-return]
        except FileNotFoundError:
            return None


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
            stack.enter_context(mock.patch(name, values[name.rsplit(".", 1)[1]]))
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
