"""This host's part of ``launch down``: it ends the run here, with or without a living agent, in these steps:

stop      the agent is asked to end its tasks in order; the lead ends the whole run, workers before ps
kill      an agent that did not stop in time is asked to kill its tasks
SIGKILL   an agent that did not answer, or is still alive, is killed, and its tasks die with it
cleanup   the other processes in the run's records are killed, and the run's lock and socket are removed
"""

import contextlib
import json
import signal
from typing import Any, List, Mapping, Sequence

from cluster.protocol.typed_json import to_values
from launch.agent import after, leftovers
from launch.agent.linux import processes
from launch.agent.protocol import local_socket
from launch.agent.state import process_records
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import described, end_for_good, newest
from launch.agent.verbs.status import is_whole, orphaned
from launch.agent.wire.verb_requests import DownRequest, LookRequest, RunReference
from launch.status.removals import RunEnded, RunLeftovers, nothing
from launch.status.run import ENDED, RunStatus, is_over

HUNG_S = 10.0  # an agent that does not answer for this long never will


def look_first(request: LookRequest) -> RunLeftovers:
    """Record that a user ends the newest run, if ``ended_by`` is set; return what the run has left on this host."""
    if request.ended_by is not None:
        end_for_good(request, request.ended_by)
    return look(request)


def look(reference: RunReference, gone: Sequence[int] = ()) -> RunLeftovers:
    """Return what the newest run has left on this host.

    ``gone`` are pids of the run's processes that have just ended.
    """
    folder = newest(reference)
    left = nothing() if folder is None else leftovers.look(folder, gone)
    return RunLeftovers(None if folder is None else folder.run, **vars(left))


def down(request: DownRequest) -> RunEnded:
    """End the newest run on this host; return what is left of it, and the errors of the commands ``after``."""
    if request.for_good:  # once more: the first look may have failed, or have found an earlier run
        end_for_good(request.run, request.reason)
    folder = newest(request.run)
    if folder is not None:
        orphans = end_agent(folder, request.timeout_s, request.reason)
        leftovers.end_for_good(folder, orphans)
        record_end(folder, request)
    problem = None if folder is None else after.problem_of(folder)
    return RunEnded(**vars(look(request.run, request.was)), after=problem)


def record_end(folder: RunFolder, request: DownRequest) -> None:
    """Record the end of a run if its lead was on this host, is dead, and has not recorded the end.

    So the run's launcher, which may be suspended, does not restart the run when it wakes. A cause that the lead has
    recorded stands: the run was about to end.
    """
    recorded = folder.read_whole("status.json") or {}
    if described(folder)["lead"] != folder.host or recorded.get("state") in ENDED or not gone(folder):
        return
    known = orphaned(folder, recorded) if is_whole(recorded) else None  # a power cut may take it, or damage it
    if known is None or not is_over(recorded):
        known = known or to_values(RunStatus(state="", run=folder.run))
        known = {**known, "state": request.state, "cause": request.reason}
    with contextlib.suppress(OSError):  # a full disk: all else has ended
        folder.write("status.json", known, durable=True)


def end_agent(folder: RunFolder, timeout_s: float, reason: str) -> List[processes.Process]:
    """Ask a run's agent to stop its tasks, then to kill them; at last send SIGKILL to the agent and its keeper.

    The function waits at most ``timeout_s`` after each request. It returns the tasks' processes from before SIGKILL:
    the tasks end with their agent, and then nothing shows to which run a process of another session belongs.

    An agent that still exists ``leftovers.GONE_S`` after SIGKILL hangs in the kernel, or has lost its record. ``look``
    then reports it among the remaining processes.
    """
    for verb in ("stop", "kill"):
        if not _answers(folder, min(HUNG_S, timeout_s)):
            break
        if _send(folder, {"do": verb, "reason": reason}) and leftovers.wait(lambda: gone(folder), timeout_s):
            return []
    tasks = process_records.tasks_of(folder)
    for process in process_records.keeper_and_agent(folder):
        processes.signal_process(process.pid, process.start, signal.SIGKILL)
    leftovers.wait(lambda: gone(folder), leftovers.GONE_S)
    return tasks


def gone(folder: RunFolder) -> bool:
    """Return whether neither an agent nor a keeper of the run is alive on this host."""
    return not process_records.agent_of(folder) and leftovers.agent_pid(folder) is None


def _answers(folder: RunFolder, timeout_s: float) -> bool:
    try:
        local_socket.ask_agent(folder.own, {"do": "status"}, timeout_s)
    except OSError:
        return False
    return True


def _send(folder: RunFolder, request: Mapping[str, Any]) -> bool:
    try:
        with local_socket.connect(folder.own, HUNG_S) as agent:
            agent.sendall(json.dumps(request).encode() + b"\n")
    except OSError:
        return False
    return True
