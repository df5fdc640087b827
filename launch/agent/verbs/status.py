"""The status of a run: from its agent where that lives, and else from the run's own files.

A record of each run that this host took part in is read from files, without a question to any agent. The state, the
times and the steps of a run are in the lead's own files. So only the host that led a run reports them, and all by its
own clock.
"""

import json
import os
import pwd
import time
from dataclasses import replace
from typing import Any, Dict, Optional

from cluster.protocol.shared_files import read_at_most
from cluster.protocol.typed_json import from_values, part_of, to_values
from launch.agent.protocol import local_socket
from launch.agent.state import leftovers, plan_file
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.state.runs import described, every_run, name_of, newest, plan_of
from launch.agent.wire.verb_requests import DrainRequest, RestartRequest, RunReference, RunsRequest
from launch.status.run import ALIVE, ENDED, RunStatus, is_over, utc
from launch.status.run_record import KnownRun, RunRecord, RunsAnswer

ADVICE = "run `launch down {file}`, then `launch up {file} --resume`"
STARTS_S = 5.0  # for an agent that is just starting to write the run's first status
LOOK_S = 0.05


def status(reference: RunReference) -> Dict[str, Any]:
    """Return the newest run's status on its lead: {"status": …}, None without a run.

    The other keys are those of ``runs.described``, ``agent``: whether the agent answered, and ``died``. ``died`` is
    whether the agent is gone, and did not know yet how the run ends.
    """
    folder = newest(reference)
    if folder is None:
        return {"status": None}
    until = time.monotonic() + STARTS_S
    while True:
        run = described(folder)
        try:
            return {**run, "status": local_socket.ask_agent(folder.own, {"do": "status"}), "agent": True}
        except OSError:
            recorded = folder.read_whole("status.json")
        leads = run["lead"] in (None, folder.host)  # a member has no status of the run
        if recorded is not None or not leads or time.monotonic() >= until:
            break
        time.sleep(LOOK_S)
    died = not is_over(recorded) and leftovers.agent_pid(folder) is None
    return {**run, "status": orphaned(folder, recorded), "agent": False, "died": died}


def restart(request: RestartRequest) -> Dict[str, Any]:
    """Have the newest run's lead restart tasks: {"asked": True} or {"error": …}."""
    return _ask(request.run, {"do": "restart", "tasks": list(request.tasks)})


def drain(request: DrainRequest) -> Dict[str, Any]:
    """Have the newest run's lead drain tasks: {"wrong": reasons why it cannot} or {"error": …}."""
    return _ask(request.run, {"do": "drain", "tasks": list(request.tasks), "back": request.back})


def _ask(run: RunReference, question: Dict[str, Any]) -> Dict[str, Any]:
    folder = newest(run)
    try:
        if folder is not None:
            return local_socket.ask_agent(folder.own, question)
    except OSError:
        pass  # its agent has left
    return {"error": "no run of this name is up on this host"}


def orphaned(folder: RunFolder, status: Optional[Dict[str, Any]]) -> Optional[Dict[str, Any]]:
    """Return a status whose agent is gone, with the tasks that were alive as lost."""
    if status is None or status.get("state") in (None, *ENDED):  # a member reports of its own tasks, and no state
        return status
    known = from_values(RunStatus, status)
    tasks = [replace(task, state="lost") if task.state in ALIVE else task for task in known.tasks]
    since = utc(os.stat(str(folder.own / "status.json")).st_mtime)
    advice = ADVICE.format(file=plan_file.read(folder).file)
    gone = f"the agent on {folder.host} is gone since {since}, and the run with it; {advice}"
    return to_values(replace(known, state="failed", ended=since, cause=known.cause or gone, tasks=tasks))


LARGEST = 64 << 20  # bytes of a status; that of 10,000 tasks has some 10 MB


def runs(request: RunsRequest) -> RunsAnswer:
    """Return the runs of this host, the one that began last first."""
    found = every_run(expand(request.workdir))
    return RunsAnswer([_known(folder) for folder in found if folder.host == request.host])


def _known(folder: RunFolder) -> KnownRun:
    run, plan = described(folder), plan_of(folder)
    status = _status(folder, run["lives"]) if run["lead"] == folder.host else RunStatus(state="")
    record = part_of(
        RunRecord,
        status,
        run=folder.run,
        name=name_of(folder.run),
        file=plan.file if plan.lead else None,
        user=plan.user or _owner(folder),
        lead=run["lead"],
        hosts=run["hosts"],
        state=status.state or None,
        incidents=status.incidents[-1].number if status.incidents else 0,
        effective_share=status.effective.share if status.effective else None,
    )
    return KnownRun(run["generation"], run["lives"], record)


def _status(folder: RunFolder, lives: bool) -> RunStatus:
    """Return the run's newest status; one without a state where the lead has left none that can be read."""
    before = RunStatus(state="starting" if lives else "")
    try:
        values = json.loads(read_at_most(folder.own / "status.json", LARGEST).decode())
        if not isinstance(values, dict) or "state" not in values:
            return before
        return from_values(RunStatus, values if lives else orphaned(folder, values))
    except (OSError, ValueError, RecursionError):
        return before


def _owner(folder: RunFolder) -> Optional[str]:
    """Return the user of this host whose files the run's are."""
    try:
        return pwd.getpwuid(os.stat(str(folder.own)).st_uid).pw_name
    except (OSError, KeyError):
        return None
