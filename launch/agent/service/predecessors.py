"""End what earlier runs of a name left alive on this host, and begin beside nothing that cannot be ended.

This happens before another run of that name begins. The keeper of an agent that died ends what the agent left. Where
agent and keeper were both killed, nobody did, and the name is free. Without this module, two generations of a run
would work side by side.
"""

from typing import List, Sequence

from launch.agent.linux import processes
from launch.agent.service.takeover import SWEPT_S
from launch.agent.state import boot_unit, containers, groups, leftovers, locks, plan_file, process_records
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import runs


def end(folder: RunFolder, name: str, file: str) -> List[str]:
    """End what earlier runs of the name left here; describe each in words.

    The caller holds the name. ``file`` is the argument of verbs about a run of this name. What an earlier agent of the
    same run left is ended before: a process of it that is still there hangs.

    Raises:
      NameTaken: another run lives, or something of it hangs in the kernel; the text names it and the remedy.
    """
    table = processes.table()
    _refuse_to_begin_beside(folder, [each.pid for each in process_records.tasks_of(folder, table)])
    earlier = [run for run in runs(folder.workdir, name, folder.host) if run.run != folder.run]
    return [_end(run, file) for run in earlier if _has_left(run, table)]


def _has_left(run: RunFolder, table: List[processes.Process]) -> bool:
    try:
        living = process_records.agent_of(run) or process_records.tasks_of(run, table)
        return bool(living or groups.left(run) or boot_unit.files(run) or containers.recorded(run))
    except (OSError, ValueError, KeyError):  # a record in pieces names nobody
        return False


def _end(run: RunFolder, file: str) -> str:
    serving = process_records.agent_of(run)
    # An agent with its keeper, whose lock somebody has removed; or a keeper that is about to start the agent again.
    if len(serving) > 1 or (serving and plan_file.read(run).detached):
        raise locks.NameTaken(locks.refusal(run.run, file))
    leftovers.wait(lambda: not process_records.agent_of(run), SWEPT_S)  # a keeper alone is about to end it all
    before = leftovers.look(run)
    leftovers.end_for_good(run)
    _refuse_to_begin_beside(run, [each.pid for each in leftovers.look(run).processes])
    pids = ", ".join(str(process.pid) for process in before.processes)
    return f"ended leftovers of {run.run}: {f'processes {pids}' if pids else 'no process'}"


def _refuse_to_begin_beside(run: RunFolder, pids: Sequence[int]) -> None:
    if pids:
        left = ", ".join(map(str, pids))
        raise locks.NameTaken(
            f"processes of {run.run} cannot be ended (pids {left}): restart this host, or leave it out"
        )
