"""The names of the product that a world replaces, and an agent's files in memory."""

import errno
import itertools
import json
from contextlib import ExitStack, contextmanager
from pathlib import Path
from random import Random
from typing import Any, Callable, Dict, Iterator, Mapping, NamedTuple, Optional
from unittest import mock

from launch.agent.state.run_folder import RunFolder

# All of it: what the agents of a world ask beside their loop, tasks and folder.
NAMES = (
    "launch.agent.service.lead.time",
    "launch.agent.service.recovery.time",
    "launch.agent.service.recovery.os",
    "launch.agent.state.report.time",
    "launch.agent.service.agent.secrets",
    "launch.agent.protocol.links.secrets",
    "launch.agent.protocol.links.since_boot",
    "launch.agent.service.member.since_boot",
    "launch.agent.service.member.say",
    "launch.agent.service.member_links.say",
    "launch.agent.protocol.gate.say_seldom",
    "launch.agent.checkpoints.fetcher.say_once",
    "launch.agent.state.run_folder.say_once",
)
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
    """A run's folder on a host whose files are in memory; nothing of it is on this machine's disk."""

    def __init__(self, run: str, host: str, files: Files):
        super().__init__(Path("/simulated") / host, run, host)
        self.files = files

    def write(self, name: str, values: Mapping[str, Any], durable: bool = False) -> None:
        self.files.write(name, json.dumps(values), durable)

    def read(self, name: str) -> Optional[Dict[str, Any]]:
        text = self.files.texts.get(name)
        return None if text is None else json.loads(text)


@contextmanager
def replaced(
    wall: Callable[[], float],
    since_boot: Callable[[], float],
    token: Callable[[int], str],
    say: Callable[[str], None],
    stat: Callable[[str], Stat],
) -> Iterator[None]:
    """Replace every name inside.

    Args:
      wall, since_boot: the calendar's time, and that since boot, of the host whose agent runs now.
      token: random text, by the world's seed.
      say: receives lines of agents' logs.
      stat: of a file, by its path.
    """
    time = mock.Mock(time=wall, process_time=itertools.count(0.0, STATUS_S).__next__)
    secrets = mock.Mock(token_hex=token)
    values = {
        "time": time,
        "since_boot": since_boot,
        "secrets": secrets,
        "say": say,
        "say_once": say,
        "say_seldom": lambda kind, text: say(text),
        "os": mock.Mock(stat=stat),
    }
    with ExitStack() as stack:
        for name in NAMES:
            stack.enter_context(mock.patch(name, values[name.rsplit(".", 1)[1]]))
        yield
