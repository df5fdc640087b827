"""What agents ask the kernel about processes and shared files, answered for the host whose agent runs now."""

import glob
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, Mapping, Optional, Sequence

from launch.agent.linux.processes import Process as Row
from launch.agent.linux.processes import ProcessTable
from tests.simulation.processes import Process

BOOT = "the boot of a simulated machine"
_FLAGS = {name: getattr(os, name) for name in dir(os) if name.startswith("O_")}


class Kernel:
    """The edge of ``launch.agent.linux.processes``: what is above it is the product's own.

    Args:
      here: the machine whose agent runs now.
    """

    def __init__(self, here: Callable[[], Any]):
        self._here = here

    def inspect(self, pid: int) -> Optional[Row]:
        return self._here().table.row(pid)  # type: ignore[no-any-return]

    def table(self) -> ProcessTable:
        return ProcessTable(self._here().table.rows())

    def environment(self, pid: int) -> Dict[str, str]:
        return self._here().table.environment(pid)  # type: ignore[no-any-return]

    def spawn(
        self, argv: Sequence[str], env: Mapping[str, str], folder: Path, output: int,
        source: int = subprocess.DEVNULL, before: Callable[[], None] = lambda: None,
    ) -> "Child":  # fmt: skip
        machine = self._here()
        return Child(machine, machine.spawn(env), source == subprocess.PIPE)

    @property
    def values(self) -> Dict[str, Any]:
        """Names of functions, and what is in their place."""
        return {
            "inspect": self.inspect,
            "table": self.table,
            "environment": self.environment,
            "spawn": self.spawn,
            "status": lambda pid: {},
            "wait_channel": lambda pid: "the kernel",
            "threads": lambda pid: [],
            "waits_in": lambda place: "",
            "text_of": lambda path: "",
            "work_of": lambda pid: None,
            "boot": lambda: BOOT,
            "open": lambda path, mode="r": self._here().disk.handles.open(path, mode),
            "Path": lambda path: self._here().disk.path(path),
            "names_in": lambda path: [],  # of open files, by which a program could write its stacks
            "glob": SimpleNamespace(escape=glob.escape, glob=lambda pattern: self._here().disk.names(pattern)),
        }

    def os(self) -> Any:
        """The names of ``os`` that agents use; what is not in it, no history may ask for."""
        here = self._here
        path = SimpleNamespace(
            lexists=lambda path: here().disk.lexists(path), getsize=lambda path: here().disk.lstat(path).st_size,
            realpath=str,
        )  # fmt: skip
        return SimpleNamespace(
            stat=lambda path: here().disk.lstat(path), path=path, strerror=os.strerror, environ={}, devnull=os.devnull,
            lstat=lambda path: here().disk.lstat(path),
            unlink=lambda path: here().disk.unlink(path),
            replace=lambda old, new: here().disk.replace(old, new),
            open=lambda path, flags, mode=0o777: here().disk.handles.os_open(path, flags, mode),
            fdopen=lambda handle, mode, **more: here().disk.handles.fdopen(handle, mode, **more),
            fsync=lambda handle: here().disk.handles.fsync(handle),
            fstat=lambda handle: here().disk.handles.fstat(handle),
            close=lambda handle: here().disk.handles.close(handle),
            set_blocking=lambda handle, is_blocking: None,
            makedirs=lambda path, mode, exist_ok: None,
            getpid=lambda: here().table.agent,
            kill=lambda pid, number: here().table.kill(pid, number),
            waitid=lambda kind, pid, options: here().table.waitid(kind, pid, options),
            waitpid=lambda pid, options: here().table.waitpid(pid, options),
            pathsep=os.pathsep, P_PID=os.P_PID, WEXITED=os.WEXITED, WNOHANG=os.WNOHANG, WNOWAIT=os.WNOWAIT, **_FLAGS,
        )  # fmt: skip


class Child:
    """A child as its parent has it, in the place of ``subprocess.Popen``."""

    def __init__(self, machine: Any, process: Process, has_source: bool):
        self._machine, self._process = machine, process
        self.pid = process.pid
        self.stdin = Source(machine, process) if has_source else None

    def wait(self, timeout: Optional[float] = None) -> int:
        """Reap it; the agent stands still for as long as that takes, ``timeout`` at most."""
        process = self._process
        if process.code is None:
            assert timeout is not None, f"pid {self.pid} lives: the agent would wait for ever"
            if not process.is_dying or process.is_stuck or process.dies_after > timeout:
                self._machine.stand_still(timeout)
                raise subprocess.TimeoutExpired("a simulated program", timeout)
            self._machine.stand_still(process.dies_after)
            process.leave(-9)
        self._machine.table.waitpid(self.pid)
        assert process.code is not None
        return process.code


class Source:
    """The standard input of a process that waits for its turn."""

    def __init__(self, machine: Any, process: Process):
        self._machine, self._process = machine, process

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        """Give it its turn."""
        if self._process.code is not None:
            raise BrokenPipeError
        self._machine.give_turn(self._process)

    def close(self) -> None:
        """Without a turn, it ends by itself."""
        if self._process.waits and self._process.code is None:
            self._process.end(0)
