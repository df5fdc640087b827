"""Puts a world in the place of what launchers and verbs ask of their machines."""

import asyncio
import os
import signal
from contextlib import ExitStack, contextmanager
from datetime import datetime
from functools import partial
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List
from unittest import mock

from launch.run.attached import AgentRestarts
from launch.view.plain_view import View
from tests.simulation.launcher import sessions
from tests.simulation.launcher.baton import wait
from tests.simulation.launcher.hosts import makes_hosts
from tests.simulation.launcher.names import OF_LAUNCHERS, OF_VERBS
from tests.simulation.launcher.programs import Poll, kill, me, no_link, write
from tests.simulation.launcher.resumes import hand_over
from tests.simulation.launcher.streams import Stream, dial, select
from tests.simulation.launcher.threads import Event, Pool, Thread, wait_for


@contextmanager
def replaced(world: Any) -> Iterator[None]:
    """Replace every name inside."""
    time = SimpleNamespace(time=world.wall, monotonic=_monotonic, sleep=wait)
    every = [(OF_LAUNCHERS, {**_of_launchers(world), "time": time}), (OF_VERBS, {**_of_verbs(world), "time": time})]
    with ExitStack() as stack:
        for names, values in every:
            for name in names:
                short = name.rsplit(".", 1)[1]
                stack.enter_context(mock.patch(name, values[name if name in values else short]))
        yield


def _monotonic() -> float:
    return asyncio.get_event_loop().time()


def _of_launchers(world: Any) -> Dict[str, Any]:
    def say(*lines: str) -> None:
        for line in lines:
            me().show(line)

    return {
        "wait": wait_for,
        "wait_for": wait_for,
        "ThreadPoolExecutor": Pool,
        "allow_open_files": lambda number: None,
        "make_hosts": makes_hosts(world.network),
        "AgentRestarts": partial(AgentRestarts, clock=_monotonic),
        "datetime": SimpleNamespace(now=lambda zone: datetime.fromtimestamp(world.wall(), zone)),
        "draft": world.operators.draft,
        "_hand_over": partial(hand_over, world),
        "print_log_of_culprit": lambda fleet, status, show: None,
        "remember": lambda spec, run: None,
        "say": say,
        "threading": SimpleNamespace(Event=Event, Thread=Thread),
        "os": SimpleNamespace(
            getpid=lambda: me().pid, kill=kill, write=lambda number, data: me().show(data.decode().rstrip())
        ),
        "signal": _Signals(),
        "sys": SimpleNamespace(stdout=SimpleNamespace(isatty=lambda: False)),
        "launch.output.os": SimpleNamespace(write=write, readlink=no_link),
        "launch.output.select": SimpleNamespace(poll=Poll, POLLOUT=4, PIPE_BUF=4096),
        "for_terminal": lambda: View(_Screen()),  # type: ignore[arg-type]
    }


class _Screen:
    """What a launcher prints."""

    def write(self, text: str) -> None:
        for line in text.splitlines():
            me().show(line)

    def flush(self) -> None:
        pass


class _Signals:
    """In the place of the module ``signal``: handlers of the program that runs now."""

    def __getattr__(self, name: str) -> Any:
        return getattr(signal, name)

    def signal(self, number: int, handler: Any) -> Any:
        before, me().handlers[number] = self.getsignal(number), handler
        return before

    def getsignal(self, number: int) -> Any:
        return me().handlers.get(number, signal.SIG_DFL)


def _of_verbs(world: Any) -> Dict[str, Any]:
    sockets = _Sockets(world)

    def boot_files(folder: Any) -> List[Any]:
        return [folder.own / "boot.json"] if world.here().has_unit else []

    return {
        "_owner": lambda folder: "somebody",
        "expand": lambda workdir: world.here().folder.workdir,
        "os": sessions.OS,
        **_of_checkpoints(world),
        "chief_command": _no_program,
        "launch.agent.verbs.status.os": SimpleNamespace(stat=lambda path: world.here().disk.lstat(path)),
        "readable": sessions.readable,
        "sys": sessions.SYS,
        "sockets": SimpleNamespace(listened_by=lambda pids: []),
        "held_by": lambda path: world.here().holder(str(path)),
        "command_line": lambda pid: "a simulated program",
        "connect": sockets.connect,
        "inside": sockets.inside,
        "socket": SimpleNamespace(AF_UNIX=1, SOCK_STREAM=1, socket=sockets.listener),
        "select": SimpleNamespace(select=select),
        "fork_away": lambda run, log, kept, title: run(),
        "serve": lambda request, says: world.here().serve(request, says),
        "files": boot_files,
        "obstacle": lambda: None if world.shape.returns else "has no systemd",
        "remove": lambda folder: world.here().remove_unit(),
    }


def _no_program(request: Any, name: str) -> Any:
    """No host can build a graph, so none finds a mistake."""
    raise OSError("a simulated host has no Python")


def _of_checkpoints(world: Any) -> Dict[str, Any]:
    """What the product's code about checkpoints asks of the disk of the host that it runs on."""

    def link(source: str, target: str) -> None:
        disk = world.here().disk
        disk.write(target, disk.read(source), durable=True)

    def names_in(folder: str) -> List[str]:
        return [path.name for path in world.here().disk.path(folder).iterdir()]

    path = SimpleNamespace(
        basename=os.path.basename, expanduser=str, getsize=lambda path: world.here().disk.lstat(path).st_size
    )
    of_disk = SimpleNamespace(
        path=path, link=link, listdir=names_in, utime=lambda path: None,
        replace=lambda old, new: world.here().disk.replace(old, new),
    )  # fmt: skip
    modules = ("checkpoints.resume", "checkpoints.stored")
    return {
        **{f"launch.agent.{module}.os": of_disk for module in modules},
        "cluster.protocol.checkpoint_files.os": of_disk,
        "shutil": SimpleNamespace(copyfile=link, copy2=link),
    }


class _Sockets:
    """The sockets of agents for callers on their hosts."""

    def __init__(self, world: Any):
        self._world, self._folder = world, ""

    @contextmanager
    def inside(self, folder: Any) -> Iterator[None]:
        self._folder = str(folder)
        yield

    def listener(self, *kind: int) -> "_Listener":
        return _Listener(self)

    def bind(self, name: str) -> str:
        path, disk = f"{self._folder}/{name}", self._world.here().disk
        if disk.lexists(path):
            raise OSError(98, "Address already in use")
        disk.write(path, "")
        return path

    def connect(self, folder: Any, timeout_s: float) -> Stream:
        stream = dial(self._world.network, me().loop.host, f"{folder}/agent.sock", timeout_s)
        stream.settimeout(timeout_s)
        return stream


class _Listener:
    """An agent's socket before it listens."""

    def __init__(self, sockets: _Sockets):
        self._sockets, self.path = sockets, ""

    def bind(self, name: str) -> None:
        self.path = self._sockets.bind(name)
