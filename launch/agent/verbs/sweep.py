"""The search for leftovers of earlier runs of any name on this host, and their removal.

``sweep`` finds a run by its folder below the working folder. A run whose agent is alive is only reported. For any other
run, everything in its records that still exists is a leftover. Leftovers are also locks of runs without a folder,
incomplete code, and unfinished environments. Logs and checkpoints are not leftovers: a run is meant to leave them.
"""

import contextlib
import shutil
import time
from pathlib import Path
from typing import Iterator, List, Sequence, Tuple

from launch.agent import leftovers
from launch.agent.environments.environment import Busy, Environment, environments
from launch.agent.state import locks, process_records
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.state.runs import every_run
from launch.agent.wire.verb_requests import SweepRequest
from launch.status.removals import RunningAgent, SweepAnswer, SweepFinding, nothing

UNFINISHED_S = 3600.0  # a folder that is unchanged for this long is no longer being written


def sweep(request: SweepRequest) -> SweepAnswer:
    """Return the live runs, and the leftovers of other runs; if the request has ``kill``, remove the leftovers."""
    workdir = expand(request.workdir)
    first = request.machine[:1] in ((), (request.host,))
    running, ended = _runs(workdir, request, first)
    found = _look(workdir, request.host, ended, first)
    if request.kill:
        for folder in ended:
            leftovers.end_for_good(folder)
        _remove(workdir, request.host, first)
    left = _look(workdir, request.host, ended, first) if request.kill else found
    return SweepAnswer(running, found, left)


def _runs(workdir: Path, request: SweepRequest, first: bool) -> Tuple[List[RunningAgent], List[RunFolder]]:
    """Return the live runs of this host, and the ended ones.

    ``first`` is whether this host also covers runs of host names that the file does not have.
    """
    living, ended = [], []
    for folder in every_run(workdir):
        if folder.host != request.host and not (first and _is_nobodys(folder, request.machine)):
            continue
        serving = leftovers.agent_pid(folder) or next((agent.pid for agent in process_records.agent_of(folder)), None)
        if serving is None:
            ended.append(folder)
        else:
            living.append(RunningAgent(folder.run, serving))
    return living, ended


def _is_nobodys(folder: RunFolder, machine: Sequence[str]) -> bool:
    """Return whether a run was on this machine, under a host name that no other request covers.

    A run of another boot may belong to another host that shares the folder.
    """
    return folder.host not in machine and process_records.is_of_this_boot(folder)


def _look(workdir: Path, host: str, ended: List[RunFolder], first: bool) -> List[SweepFinding]:
    runs = [SweepFinding(folder.run, **vars(leftovers.look(folder)), folders=[]) for folder in ended]
    known = [path for run in runs for path in run.locks]
    stray = [str(path) for path in _free_locks(workdir, host) if str(path) not in known]
    unfinished = [*_half_sent(workdir), *(each.path for each in _half_built(workdir))] if first else []
    folders = [str(path) for path in unfinished]
    entries = [*runs, SweepFinding(None, **{**vars(nothing()), "locks": stray}, folders=folders)]
    return [entry for entry in entries if any(value for kind, value in vars(entry).items() if kind != "run")]


def _free_locks(workdir: Path, host: str) -> List[Path]:
    """Return the locks of this host that no process holds."""
    found = sorted((workdir / "locks").glob(f"*@{host}.lock"))
    return [path for path in found if locks.lock_holder(workdir, path.name.rsplit("@", 1)[0], host) is None]


def _half_sent(workdir: Path) -> List[Path]:
    """Return incomplete code, which is unpacked next to its place, under a name with a dot."""
    found = sorted((workdir / "code").glob(".*"))
    return [path for path in found if time.time() - path.stat().st_mtime > UNFINISHED_S]


def _half_built(workdir: Path) -> Iterator[Environment]:
    """Yield the incomplete environments that no process builds now."""
    for environment in environments(workdir):
        with contextlib.suppress(Busy):
            if not environment.is_complete():
                with environment.held(alone=True):
                    yield environment


def _remove(workdir: Path, host: str, first: bool) -> None:
    """Remove free locks, incomplete code and incomplete environments."""
    for path in _free_locks(workdir, host):
        path.unlink()
    if not first:
        return
    for folder in _half_sent(workdir):
        shutil.rmtree(str(folder), ignore_errors=True)
    for environment in _half_built(workdir):
        environment.forget()  # still held: a process that waits for it finds it missing, and builds it
