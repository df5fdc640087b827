"""The removal of past runs and of shipped code on this host, by each name's retention rule.

The rule of a name is the rule in the request, or else the rule of the newest run of the name. Without a rule, which
older versions did not write, all runs of the name stay.

``launch prune`` starts a removal. A run also starts one after its own start, in a separate thread, because training
must not wait for the disk. If the agent ends before the removal, the next removal continues.

The removal first renames a folder to a name that no run and no code has, and then removes its files. So no verb ever
sees a partly removed folder, even if this process is killed: the next removal continues with the remainder. Links in
the folder are removed, and their targets stay. A folder in which something is mounted stays.
"""

import contextlib
import os
import secrets
import shlex
import threading
import time
from pathlib import Path
from typing import Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set

from cluster.protocol.settings import Keep
from launch.agent.linux import file_lock
from launch.agent.linux.procfs import mounts_in
from launch.agent.linux.removal import remove_folder
from launch.agent.retention.measure import measure
from launch.agent.retention.past_runs import (
    Clocks,
    Known,
    described,
    is_old,
    known_runs,
    living,
    needed,
    rule_of,
    unused_code,
    was_just_used,
)
from launch.agent.retention.rules import PastRun, decide, may_go
from launch.agent.state import locks, plan_file
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder, expand
from launch.agent.wire.run_request import RunRequest
from launch.agent.wire.verb_requests import PruneRequest
from launch.status.removals import NotRemoved, PruneAnswer, Removable, Spared

RUN, CODE, REST = "run", "code", "rest"
_PARENTS = {RUN: "runs", CODE: "code"}


class PrunedPlace(NamedTuple):
    """The working folder whose past runs and code may be removed.

    Attributes:
      workdir: the working folder.
      hosts: the names of this machine in the hosts file.
      rules: {name of runs: rule} from the request; these override the rules of the runs themselves.
    """

    workdir: Path
    hosts: Sequence[str]
    rules: Mapping[str, Keep]


def look(place: PrunedPlace, clocks: Clocks, whole: bool = True) -> PruneAnswer:
    """Return the runs and code to remove, and the runs that exceed a bound but must stay; remove nothing.

    If ``whole`` is False, runs that cannot exceed a bound are not measured, and their bytes do not count.
    """
    known = known_runs(place.workdir, place.hosts)
    names = {each.run: each.name for each in known}
    rules = {name: _rule(place, name, known) for name in dict.fromkeys(names.values())}
    found = described(known, clocks, () if whole else _within(known, rules, clocks))
    going: List[Removable] = []
    spared: List[Spared] = []
    for name, rule in rules.items():
        if rule is not None:
            _decide([run for run in found if names[run.run] == name], rule, going, spared)
    going += [*_code(place.workdir, known, clocks), *_rests(place.workdir)]
    return PruneAnswer(len(found), sum(run.bytes for run in found), going, spared, [])


def _rule(place: PrunedPlace, name: str, known: Sequence[Known]) -> Optional[Keep]:
    return place.rules.get(name) or rule_of([each for each in known if each.name == name])


def _within(known: Sequence[Known], rules: Mapping[str, Optional[Keep]], clocks: Clocks) -> Set[str]:
    """Return the runs that are within the bounds of their name, as far as this is known without their size."""
    places: Dict[str, int] = {}
    found = set()
    for run in known:
        place, rule = places.get(run.name, 0), rules[run.name]
        places[run.name] = place + 1
        if rule is None or not may_go(place, clocks.launcher - run.generation, rule):
            found.add(run.run)
    return found


def _decide(runs: Sequence[PastRun], rule: Keep, going: List[Removable], spared: List[Spared]) -> None:
    decision, by_run = decide(runs, rule), {run.run: run for run in runs}
    going += [Removable(RUN, run, by_run[run].bytes, why) for run, why in decision.going.items()]
    spared += [Spared(run, why, by_run[run].needed or "") for run, why in decision.spared.items()]


def _code(workdir: Path, known: Sequence[Known], clocks: Clocks) -> Iterator[Removable]:
    alive = [run for run in known if living(run, clocks.here)]
    used = {digest for run in alive for part in run.parts for digest in plan_file.read(part).code.values()}
    for unused in unused_code(workdir, used, clocks.here):
        yield Removable(CODE, unused.path.name, unused.bytes, "not used for 7 days")


def _rests(workdir: Path) -> Iterator[Removable]:
    for parent in _PARENTS.values():
        for rest in remainders(workdir / parent):
            with contextlib.suppress(OSError):  # another host that shares the folder was faster
                yield Removable(REST, rest.name, measure(rest).bytes, "an interrupted removal")


def prune(place: PrunedPlace, clocks: Clocks, whole: bool = True) -> PruneAnswer:
    """Remove the runs and code that ``look`` returns; return its result, with the failures added.

    ``whole`` is as in ``look``.
    """
    found = look(place, clocks, whole)
    failed = _hide(place, [each for each in found.going if each.what != REST], clocks)
    for parent in _PARENTS.values():
        for rest in remainders(place.workdir / parent):
            why = remove(rest)
            if why is not None:
                failed[rest.name] = why
    return PruneAnswer(
        found.runs, found.bytes, found.going, found.spared, [NotRemoved(name, why) for name, why in failed.items()]
    )


def _hide(place: PrunedPlace, going: Sequence[Removable], clocks: Clocks) -> Dict[str, str]:
    """Rename runs and code; return the remaining ones, with the reasons.

    Measuring takes time. So the function checks every reason to stay again, while no run can start.
    """
    if not going:
        return {}
    try:
        with locks.removal(place.workdir):
            why = needed(known_runs(place.workdir, place.hosts), clocks)
            kept = {each.name: why.get(each.name) or _hide_one(place.workdir, each, clocks) for each in going}
    except (file_lock.LockHeld, file_lock.NoLocks, OSError) as error:
        reason = "a run is starting here; try again" if isinstance(error, file_lock.LockHeld) else str(error)
        kept = {each.name: reason for each in going}
    return {name: reason for name, reason in kept.items() if reason}


def _hide_one(workdir: Path, each: Removable, clocks: Clocks) -> str:
    """Rename a run or code; return the reason why it stays, "" where it does not."""
    path = workdir / _PARENTS[each.what] / each.name
    used = (
        was_just_used(RunFolder(workdir, each.name, ""), clocks) if each.what == RUN else not is_old(path, clocks.here)
    )
    if used or path.is_symlink():
        return "it has been used since"
    try:
        mounted = mounts_in(path)
        if mounted:
            return f"{mounted[0]} is a mount point"
        hide(path)
    except FileNotFoundError:  # another host that shares the folder was faster
        return ""
    except OSError as error:
        return f"{path}: {error.strerror}"
    return ""


def begin_beside(request: RunRequest, folder: RunFolder) -> None:
    """Start a thread that removes past runs and code on this host, unless this agent replaces an earlier one."""
    if request.retention is not None and not request.again:
        threading.Thread(target=_prune_beside, args=(request, folder), daemon=True, name="prune").start()


def _prune_beside(request: RunRequest, folder: RunFolder) -> None:
    rules = {} if request.retention is None else {request.name: request.retention}
    now = time.time()
    clocks = Clocks(now, now if request.generation is None else float(request.generation))
    try:
        found = prune(PrunedPlace(folder.workdir, [request.host], rules), clocks, whole=False)
    except Exception as error:  # an error here must not end this run
        say(f"past runs were not checked for removal: {type(error).__name__}: {error}")
        return
    failed = {each.name: each.why for each in found.failed}
    for name, why in failed.items():
        say(f"{name} was not removed: {why}")
    for each in found.going:
        if each.name not in failed:
            say(f"removed the {each.what} {each.name}, {each.bytes} bytes: {each.why}")


def answer(request: PruneRequest) -> PruneAnswer:
    """Return the runs and code that the rules remove; if the request has ``remove``, remove them."""
    place = PrunedPlace(expand(request.workdir), request.hosts, {request.name: request.rule})
    clocks = Clocks(time.time(), request.now)
    return prune(place, clocks) if request.remove else look(place, clocks)


REMOVED = ".removed-"


def hide(path: Path) -> Path:
    """Rename a folder for its removal, and return the new path. Raises OSError."""
    rest = path.with_name(f"{REMOVED}{path.name}-{secrets.token_hex(4)}")
    os.rename(str(path), str(rest))
    return rest


def remainders(parent: Path) -> List[Path]:
    """Return the remaining folders in ``parent`` that were renamed for removal."""
    return sorted(parent.glob(f"{REMOVED}*"))


def remove(rest: Path) -> Optional[str]:
    """Remove a renamed folder; return the reason why a part of it stays, or None."""
    if rest.is_symlink():
        return f"{rest}: expected a folder, found a link"
    try:
        mounted = mounts_in(rest)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    if mounted:  # the removal would empty what is mounted there
        return f"{mounted[0]}: something is mounted there; unmount it with `umount {shlex.quote(mounted[0])}`"
    return remove_folder(rest)
