"""The leftovers of earlier runs on this host, whatever their names, and their removal.

``sweep`` finds a run by its folder below the working folder. A run whose agent lives is reported and left alone. Of
the other runs, everything that their records name is a leftover. Leftovers are also the locks of runs that have no
folder any more, code that came half, and environments that were never finished. The logs and checkpoints of a run,
which it was to leave, are none.
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

UNFINISHED_S = 3600.0  # what nobody has touched for so long, nobody is writing any more


def sweep(request: SweepRequest) -> SweepAnswer:
    """Return the living runs and the leftovers of others; with ``kill`` end the leftovers."""
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
    """The runs of this host: those that live, and those that do not.

    ``first`` is whether runs of names that the file does not have are this host's too.
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
    """Return whether a run was on this machine, by a name of which no other request asks.

    A run of another boot may be of another host, with which this one shares the folder.
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
    """Locks of this host that nobody holds."""
    found = sorted((workdir / "locks").glob(f"*@{host}.lock"))
    return [path for path in found if locks.lock_holder(workdir, path.name.rsplit("@", 1)[0], host) is None]


def _half_sent(workdir: Path) -> List[Path]:
    """Code of which only a part has come; it is unpacked beside its place, under a name with a dot."""
    found = sorted((workdir / "code").glob(".*"))
    return [path for path in found if time.time() - path.stat().st_mtime > UNFINISHED_S]


def _half_built(workdir: Path) -> Iterator[Environment]:
    """Environments that are not complete and that nobody builds now."""
    for environment in environments(workdir):
        with contextlib.suppress(Busy):
            if not environment.is_complete():
                with environment.held(alone=True):
                    yield environment


def _remove(workdir: Path, host: str, first: bool) -> None:
    """Remove what belongs to no run, and the locks that runs without a folder left."""
    for path in _free_locks(workdir, host):
        path.unlink()
    if not first:
        return
    for folder in _half_sent(workdir):
        shutil.rmtree(str(folder), ignore_errors=True)
    for environment in _half_built(workdir):
        environment.forget()  # still held: who waits for it finds that it is gone, and makes it anew
