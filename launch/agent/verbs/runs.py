"""The runs of every name in which this host took part, as the files on this host describe them.

The verb reads only files, and asks no agent. The state, the times and the steps of a run are only in the files of the
chief's host. So only that host reports them, with times of its own clock.
"""

import json
import os
import pwd
from typing import Optional

from cluster.protocol.shared_files import read_at_most
from cluster.protocol.typed_json import from_values, part_of
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder, expand, name_of
from launch.agent.state.runs import described, every_run
from launch.agent.verbs.status import orphaned
from launch.agent.wire.verb_requests import RunsRequest
from launch.status.run import KnownRun, RunRecord, RunsAnswer, RunStatus

LARGEST = 64 << 20  # bytes of a status; the status of 10,000 tasks has some 10 MB


def runs(request: RunsRequest) -> RunsAnswer:
    """Return the runs of this host, newest first."""
    found = every_run(expand(request.workdir))
    return RunsAnswer([_known(folder) for folder in found if folder.host == request.host])


def _known(folder: RunFolder) -> KnownRun:
    run, plan = described(folder), plan_file.read(folder)
    args, train = plan_file.arguments(plan)
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
        args=args,
        train=train,
        continues=plan.resume_from.run if plan.resume_from else None,
        began_at=plan.resume_from.step if plan.resume_from else None,
    )
    return KnownRun(run["generation"], run["lives"], record)


def _status(folder: RunFolder, lives: bool) -> RunStatus:
    """Return the run's newest status; a status without a state where the lead has left no readable one."""
    before = RunStatus(state="starting" if lives else "")
    try:
        values = json.loads(read_at_most(folder.own / "status.json", LARGEST).decode())
        if not isinstance(values, dict) or "state" not in values:
            return before
        return from_values(RunStatus, values if lives else orphaned(folder, values))
    except (OSError, ValueError, RecursionError):
        return before


def _owner(folder: RunFolder) -> Optional[str]:
    """Return the user of this host who owns the run's files."""
    try:
        return pwd.getpwuid(os.stat(str(folder.own)).st_uid).pw_name
    except (OSError, KeyError):
        return None
