"""The leftovers of a run on this host and their removal: processes, ports, locks, control groups, containers.

The module signals only processes that ``process_records`` finds, each by pid and start time. It removes only containers
that the records name. It also finds GPU memory that these processes hold.

The keeper, an agent's parent process, cleans up after a dead agent. This takes a moment, and ``make_way`` waits for it
before the next agent begins. So a host never has two agents of a run, nor tasks of two agents.

If agent and keeper were both killed, nothing has been cleaned up, and the run's name is free. So ``end_earlier_runs``
cleans up before another run of that name begins, and refuses the start if a process cannot be ended. Otherwise two runs
of one name would work at the same time.
"""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Callable, Iterable, List, Optional, Sequence

from launch.agent.containers import control
from launch.agent.gpus.nvidia_smi import memory_of
from launch.agent.limits import control_groups
from launch.agent.linux import processes, sockets
from launch.agent.state import boot_unit, locks, plan_file, process_records, temporary
from launch.agent.state.locks import last_holder, lock_holder
from launch.agent.state.run_folder import RunFolder, lock_path
from launch.agent.state.runs import runs
from launch.status.removals import GpuMemory, Leftovers, ProcessLeft

POLL_S = 0.05
GONE_S = 10.0  # a killed process ends at once, or hangs in the kernel


def look(folder: RunFolder, gone: Iterable[int] = ()) -> Leftovers:
    """Return the processes, ports, GPU memory, locks, control groups and containers of the run on this host.

    Locks are the lock on the run's name, the agent's socket, and the systemd unit that starts the agent at boot.

    Args:
      gone: pids of the run's processes that have just ended: the driver may hold their memory a little longer.
    """
    living = [*_serving(folder), *process_records.tasks_of(folder)]
    pids = [process.pid for process in living]
    held = memory_of([*pids, *gone]) if _uses_gpus(folder) else []
    return Leftovers(
        [_described(process) for process in living],
        sockets.listened_by(pids),
        [GpuMemory(each["gpu"], each["pid"], each["mib"]) for each in held],
        [str(path) for path in [*_locks(folder), *boot_unit.files(folder)]],
        [str(path) for path in control_groups.left(folder)],
        control.left(folder),
    )


def _serving(folder: RunFolder) -> List[processes.Process]:
    """Return the recorded agent and keeper, and an unrecorded agent that holds the run's name."""
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
    """Return the pid of the run's agent on this host, which holds the lock on the run's name.

    The result is None if no agent of the run holds the lock.
    """
    holder = lock_holder(folder.workdir, plan_file.read(folder).name, folder.host)
    return holder["pid"] if holder and holder.get("run") == folder.run else None


def end(folder: RunFolder, orphans: Sequence[processes.Process] = ()) -> None:
    """Kill the run's recorded processes and ``orphans``; remove containers, control groups and temporary files.

    If no agent of the run holds the lock on its name, the function also removes the lock and the agent's socket.
    The unit that starts the agent at boot stays.
    """
    own = os.getpid()  # may be the keeper's, which ends by itself
    tasks = [*orphans, *process_records.tasks_of(folder)]
    end_all(lambda: [process for process in process_records.keeper_and_agent(folder) if process.pid != own])
    control.remove_recorded(folder)
    end_all(lambda: _living_of(folder, tasks))
    control_groups.remove_left(folder)
    control.forget_gone(folder)
    temporary.remove_left(folder)
    for path in _locks(folder) if agent_pid(folder) is None else []:
        with contextlib.suppress(FileNotFoundError):  # the keeper has removed the file first
            path.unlink()


def _living_of(folder: RunFolder, tasks: Iterable[processes.Process]) -> List[processes.Process]:
    """Return the run's living task processes. Of ``tasks``, some may have lost the parent that showed their run."""
    return sorted(
        {*process_records.tasks_of(folder), *(each for each in tasks if processes.is_same(each.pid, each.start))}
    )


def end_as_keeper(folder: RunFolder, is_ours: bool) -> None:
    """Clean up after an agent that has ended. The agent's keeper calls this function.

    If ``is_ours`` is False, the records may belong to another agent of the run. Then the function only kills this
    process's descendants.
    """
    if is_ours:
        control.remove_recorded(folder)  # before the processes of their runtime are killed
    end_all(lambda: processes.descendants(processes.table(), os.getpid()))
    if is_ours:
        end(folder)


def end_for_good(folder: RunFolder, orphans: Sequence[processes.Process] = ()) -> None:
    """Do the same as ``end``, and remove the unit that starts the run's agent at boot."""
    boot_unit.remove(folder)
    end(folder, orphans)


def end_all(living: Callable[[], List[processes.Process]]) -> None:
    """Kill the processes that ``living`` returns, and wait at most ``GONE_S`` until it returns none."""
    for process in living():
        processes.signal_process(process.pid, process.start, signal.SIGKILL)
    wait(lambda: not living(), GONE_S)


def _locks(folder: RunFolder) -> List[Path]:
    """Return the run's lock and socket, where they exist.

    A lock that another run of the name holds or left does not count.
    """
    lock = lock_path(folder.workdir, plan_file.read(folder).name, folder.host)
    ours = [lock] if last_holder(lock) == folder.run else []
    return [path for path in [*ours, folder.own / "agent.sock"] if path.exists()]


def wait(done: Callable[[], bool], timeout_s: float) -> bool:
    """Wait at most ``timeout_s`` until ``done`` returns True; return whether it did."""
    until = time.monotonic() + timeout_s
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(POLL_S)
    return True


SWEPT_S = 15.0  # for the keeper's cleanup, which waits 10 s for hanging processes


def make_way(folder: RunFolder) -> Optional[int]:
    """Return the pid of the run's agent on this host. If there is none, clean up after the last one, and return None.

    If the keeper of an ended agent is still running, the function first waits at most ``SWEPT_S`` for it. The keeper
    cleans up, or starts the next agent.
    """
    wait(lambda: _serves(folder) or not process_records.agent_of(folder), SWEPT_S)
    serving = agent_pid(folder)
    if serving is None and folder.own.is_dir():
        end(folder)  # where no keeper was left to clean up
    return serving


def _serves(folder: RunFolder) -> bool:
    return agent_pid(folder) is not None


def end_earlier_runs(folder: RunFolder, name: str, file: str) -> List[str]:
    """Remove what earlier runs of ``name`` have left on this host; return a text about each such run.

    The caller holds the lock on the name. ``file`` is the hosts file to name in advice about verbs. The leftovers of an
    earlier agent of the same run have already been removed, so a remaining process of that agent hangs.

    Raises:
      NameTaken: another run is alive, or one of its processes hangs in the kernel. The text has the run and the remedy.
    """
    table = processes.table()
    _refuse_to_begin_beside(folder, [each.pid for each in process_records.tasks_of(folder, table)])
    earlier = [run for run in runs(folder.workdir, name, folder.host) if run.run != folder.run]
    return [_end_earlier_run(run, file) for run in earlier if _has_left(run, table)]


def _has_left(run: RunFolder, table: processes.ProcessTable) -> bool:
    living = process_records.agent_of(run) or process_records.tasks_of(run, table)
    files = control_groups.left(run) or boot_unit.files(run) or temporary.left(run)
    return bool(living or files or process_records.container_names(run))


def _end_earlier_run(run: RunFolder, file: str) -> str:
    serving = process_records.agent_of(run)
    # An agent with its keeper, whose lock was removed; or a keeper that is about to restart the agent.
    if len(serving) > 1 or (serving and plan_file.read(run).detached):
        raise locks.NameTaken(locks.refusal(run.run, file))
    wait(lambda: not process_records.agent_of(run), SWEPT_S)  # a keeper alone is about to clean up
    before = look(run)
    end_for_good(run)
    _refuse_to_begin_beside(run, [each.pid for each in look(run).processes])
    pids = ", ".join(str(process.pid) for process in before.processes)
    return f"ended leftovers of {run.run}: {f'processes {pids}' if pids else 'no process'}"


def _refuse_to_begin_beside(run: RunFolder, pids: Sequence[int]) -> None:
    if pids:
        left = ", ".join(map(str, pids))
        raise locks.NameTaken(
            f"processes of {run.run} cannot be ended (pids {left}): restart this host, or leave it out of the run"
        )
