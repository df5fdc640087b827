"""The runs that this host took part in, whatever their names: each as the host remembers it.

A record is read from files, without a question to any agent. The state, the times and the steps of a run are in the
lead's own files. So only the host that led a run reports them, and all by its own clock.
"""

import json
import os
import pwd
from typing import Optional

from cluster.protocol.shared_files import read_at_most
from cluster.protocol.typed_json import from_values, part_of
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.state.runs import described, every_run, name_of, plan_of
from launch.agent.verbs.status import orphaned
from launch.agent.wire.verb_requests import RunsRequest
from launch.status.run import KnownRun, RunRecord, RunsAnswer, RunStatus

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
