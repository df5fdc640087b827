"""Find and end what a run has on this host: processes, ports, GPU memory, locks, control groups, containers.

The module signals only processes that the run's own records name, by pid and start time, and removes only containers
that they name.
"""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Callable, Iterable, List, Optional

from launch.agent.gpus.state import memory_of
from launch.agent.linux import ports, processes
from launch.agent.state import boot_unit, containers, groups, plan_file, process_records
from launch.agent.state.locks import last_holder, lock_holder
from launch.agent.state.run_folder import RunFolder, lock_path
from launch.status.leftovers import GpuMemory, Leftovers, ProcessLeft

POLL_S = 0.05
GONE_S = 10.0  # what was killed is gone at once, or hangs in the kernel


def look(folder: RunFolder, gone: Iterable[int] = ()) -> Leftovers:
    """Return the processes, ports, GPU memory, locks, control groups and containers of the run on this host.

    The locks are the lock of the run's name, the agent's socket, and what starts the agent at a boot.

    Args:
      gone: pids that were the run's a moment ago: a driver may hold their memory a little longer.
    """
    living = [*_serving(folder), *process_records.tasks_of(folder)]
    pids = [process.pid for process in living]
    held = memory_of([*pids, *gone]) if _uses_gpus(folder) else []
    return Leftovers(
        [_described(process) for process in living],
        ports.listened_by(pids),
        [GpuMemory(each["gpu"], each["pid"], each["mib"]) for each in held],
        [str(path) for path in [*_locks(folder), *boot_unit.files(folder)]],
        [str(path) for path in groups.left(folder)],
        containers.left(folder),
    )


def _serving(folder: RunFolder) -> List[processes.Process]:
    """Return agent and keeper; without their record, the agent that holds the run's name."""
    recorded, holder = process_records.agent_of(folder), agent_pid(folder)
    unrecorded = None if holder in (None, *(each.pid for each in recorded)) else processes.inspect(holder or 0)
    return recorded if unrecorded is None else [unrecorded, *recorded]


def _described(process: processes.Process) -> ProcessLeft:
    waits_in = processes.wait_channel(process.pid) if process.state == "D" else None
    argv = processes.command_line(process.pid)
    return ProcessLeft(process.pid, process.group, process.start, argv, waits_in)


def _uses_gpus(folder: RunFolder) -> bool:
    return any(task.gpus for task in plan_file.read(folder).tasks or ())


def agent_pid(folder: RunFolder) -> Optional[int]:
    """Return the pid of the agent that holds the run's name on this host.

    The result is None where no agent of the run lives.
    """
    holder = lock_holder(folder.workdir, plan_file.read(folder).name, folder.host)
    return holder["pid"] if holder and holder.get("run") == folder.run else None


def end(folder: RunFolder) -> None:
    """Kill what the run's records name; remove containers and groups, and the lock and socket of a dead agent.

    What starts the agent at a boot stays.
    """
    own = os.getpid()  # a keeper's, which ends by itself
    end_all(lambda: [process for process in process_records.keeper_and_agent(folder) if process.pid != own])
    containers.remove(folder)
    end_all(lambda: process_records.tasks_of(folder))
    groups.remove(folder)
    containers.forget(folder)
    for path in _locks(folder) if agent_pid(folder) is None else []:
        with contextlib.suppress(FileNotFoundError):  # the keeper was faster
            path.unlink()


def end_for_good(folder: RunFolder) -> None:
    """Do as ``end``, and have no boot start the run's agent here again."""
    boot_unit.remove(folder)
    end(folder)


def end_all(living: Callable[[], List[processes.Process]]) -> None:
    """Kill the living processes, and wait, bounded in time, until there are none."""
    for process in living():
        processes.signal_process(process.pid, process.start, signal.SIGKILL)
    wait(lambda: not living(), GONE_S)


def _locks(folder: RunFolder) -> List[Path]:
    """Return the run's lock and socket, where they exist.

    A lock that another run of the name holds, or left, is not ours.
    """
    lock = lock_path(folder.workdir, plan_file.read(folder).name, folder.host)
    ours = [lock] if last_holder(lock) == folder.run else []
    return [path for path in [*ours, folder.own / "agent.sock"] if path.exists()]


def wait(done: Callable[[], bool], timeout_s: float) -> bool:
    """Wait for ``done``, and return whether it came true in time."""
    until = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(POLL_S)
    return True
