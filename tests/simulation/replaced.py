"""Puts a world in the place of the machine that agents run on; an agent's own files, in memory."""

import asyncio
import errno
import itertools
import json
from contextlib import ExitStack, contextmanager
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional, get_type_hints
from unittest import mock

from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.health import Vitals
from launch.agent.tasks.log_index import LogTimes
from tests.simulation.kernel import Kernel
from tests.simulation.names import NAMES

STATUS_S = 0.005  # of a processor's time, for a status: the next one comes the later


class Stat(NamedTuple):
    """What is asked of a file."""

    st_mtime: float


class Files:
    """The files of an agent by name, each with the time of its last change; they outlast the agent.

    ``is_full``: the disk takes nothing more.
    """

    def __init__(self, clock: Callable[[], float]):
        self.clock, self.is_full = clock, False
        self.texts: Dict[str, str] = {}
        self.changed: Dict[str, float] = {}
        self._safe: Dict[str, str] = {}  # what a power cut leaves, of the files that the disk may not have yet

    def write(self, name: str, text: str, durable: bool) -> None:
        """Replace a file. Raises OSError where the disk is full."""
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self.texts[name], self.changed[name] = text, self.clock()
        if durable:
            self._safe[name] = text

    def lose(self, random: Random) -> None:
        """Power is cut: the disk has each file as it was last synced, as it was later, or in pieces."""
        for name, text in list(self.texts.items()):
            kept = random.choice([text, text, self._safe.get(name), ""])
            if text == self._safe.get(name) or kept == text:
                continue
            if kept is None:
                del self.texts[name]
            else:
                self.texts[name] = kept


class Folder(RunFolder):
    """A run's folder on a host whose own files are in memory; those of its tasks are on its ``Disk``."""

    def __init__(self, run: str, host: str, files: Files):
        super().__init__(Path("/simulated") / host, run, host)
        self.files = files
        self.task = lru_cache(maxsize=None)(super().task)  # type: ignore[method-assign]  # asked for at every poll

    def write(self, name: str, values: Mapping[str, Any], durable: bool = False) -> None:
        self.files.write(name, json.dumps(values), durable)

    def read(self, name: str) -> Optional[Dict[str, Any]]:
        text = self.files.texts.get(name)
        return None if text is None else json.loads(text)


@contextmanager
def replaced(world: Any) -> Iterator[None]:
    """Replace every name inside; time and processes are those of the host whose agent runs now."""
    kernel, used = Kernel(world.here), itertools.count(0.0, STATUS_S)
    time = SimpleNamespace(
        time=world.wall, process_time=used.__next__, monotonic=lambda: asyncio.get_event_loop().time()
    )
    values = {
        **kernel.values,
        "os": kernel.os(world.stat),
        "time": time,
        "since_boot": world.since_boot,
        "secrets": SimpleNamespace(token_hex=world.token),
        "say": world.say,
        "say_once": world.say,
        "say_seldom": lambda kind, text: world.say(text),
        "LogTimes": partial(LogTimes, clock=world.wall),
        "Vitals": partial(Vitals, lambda pid: None),
        "MemoryKills": _NoKills,
        "Traffic": _NoTraffic,
        "read_sign": lambda folder: None,
        "get_type_hints": lru_cache(maxsize=None)(get_type_hints),
    }
    with ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(mock.patch(name, values[name.rsplit(".", 1)[1]]))
        yield


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
