"""The past runs and the shipped code on this host, and the reasons why some of them must stay.

A run stays under any rule:

- while a process of the run may live, and for an hour after its last use;
- if it is the newest of its name, or the newest with a checkpoint, from which ``up --resume`` would continue;
- if the plan of a live run, or of the newest run of a name, contains the run's full name: to resume from it, as a
  warm start, or in an argument of a command.

Hosts may share the working folder, but a host cannot see another host's processes. A living agent renews its files once
a day. So a run without a record from this machine's current boot stays for two days.

No single clock decides that a run is old. Its age is the lesser of two times: the time since its last modification by
this host's clock, and the time since its start by the clocks of the launchers.

Shipped code stays while a live run uses it, while a process works in its folder, and for a week after its last use.
Removing code is always safe: the next verb that needs the code sends it again.
"""

import os
import re
from pathlib import Path
from typing import Collection, Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

from cluster.protocol.settings import Keep
from cluster.protocol.shared_files import read_at_most
from launch.agent.checkpoints import stored
from launch.agent.linux import processes
from launch.agent.retention.measure import BLOCK, HOSTS, measure
from launch.agent.retention.rules import PastRun
from launch.agent.state import plan_file, process_records
from launch.agent.state.run_folder import RunFolder, name_of
from launch.agent.state.runs import generation, lives
from launch.agent.tasks.work_folder import MANIFEST

USED_S = 3600.0  # a run used this recently may be in use, also by a starting run
UNSEEN_S = 48 * 3600.0  # an agent renews day-old files (``tasks.work_folder``), and checks once an hour
LARGEST_PLAN = 64 << 20
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*-\d{8}-\d{6}")


class Clocks(NamedTuple):
    """The current Unix time in seconds, by this host's clock and by the clock of the launcher that sent the request."""

    here: float
    launcher: float


class Known(NamedTuple):
    """A run on this host. ``parts`` are its folders, one for each host; ``generation`` orders runs by age."""

    run: str
    name: str
    generation: int
    parts: Sequence[RunFolder]


def known_runs(workdir: Path, hosts: Collection[str]) -> List[Known]:
    """Return the runs in which one of ``hosts`` took part, the newest first.

    If a run's folder is a link, because a user has moved the run elsewhere, the run is left out.
    """
    found = []
    for path in _folders(workdir / "runs"):
        parts = [RunFolder(workdir, path.name, each.name) for each in _folders(path / HOSTS)]
        if any(part.host in hosts for part in parts):
            found.append(Known(path.name, name_of(path.name), max(map(generation, parts)), parts))
    found = [each for each in found if _FOLDER.fullmatch(each.run)]
    return sorted(found, key=lambda each: (each.generation, each.run), reverse=True)


def _folders(parent: Path) -> List[Path]:
    """Return the folders in a folder, without links to folders."""
    try:
        names = sorted(os.listdir(str(parent)))
    except OSError:
        return []
    paths = [parent / name for name in names]
    return [path for path in paths if os.path.isdir(str(path)) and not os.path.islink(str(path))]


def rule_of(runs: Sequence[Known]) -> Optional[Keep]:
    """Return the rule for ``runs`` of one name: that of the newest; None if an older version wrote this run."""
    return next((plan.retention for plan in map(plan_file.read, runs[0].parts) if plan.retention is not None), None)


def described(runs: Sequence[Known], clocks: Clocks, skipped: Collection[str] = ()) -> List[PastRun]:
    """Return the age, size and other facts of ``runs`` on which their removal depends, in the same order.

    A run that has been removed meanwhile is left out.
    The runs in ``skipped`` stay and are not measured, because measuring a large folder takes time.
    """
    why = needed(runs, clocks)
    found = []
    for run in runs:
        if run.run in skipped:
            found.append(PastRun(run.run, 0, 0.0, True, "it is within its bounds"))
            continue
        try:
            size = measure(run.parts[0].path)
        except OSError:
            continue
        age_s = max(0.0, min(clocks.here - size.used_at, clocks.launcher - run.generation))
        reason = why.get(run.run) or (f"{size.mount} is a mount point or another disk" if size.mount else None)
        reason = reason or ("used within the last hour" if clocks.here - size.used_at < USED_S else None)
        found.append(PastRun(run.run, size.bytes, age_s, size.has_results, reason))
    return found


def needed(runs: Sequence[Known], clocks: Clocks) -> Dict[str, str]:
    """Return {run: the reason why it must stay}; these reasons hold under any rule and for any size."""
    table = processes.table()
    why: Dict[str, str] = {}
    names: Set[str] = set()
    texts: Dict[str, str] = {}
    for run in runs:
        alive = living(run, clocks.here, table)
        if alive is not None:
            why[run.run] = alive
        if run.name not in names:
            why.setdefault(run.run, "the newest of its name")
        if alive is not None or run.name not in names:
            texts[run.run] = _plans(run)
        names.add(run.name)
    for run in runs:
        user = next((each for each, text in texts.items() if each != run.run and run.run in text), None)
        if user is not None:
            why.setdefault(run.run, f"the plan of {user} names this run")
    for each in _newest_with_checkpoint(runs):
        why.setdefault(each, "the newest of its name with a checkpoint")
    return why


def living(run: Known, now: float, table: Optional[processes.ProcessTable] = None) -> Optional[str]:
    """Return the reason to assume that the run is alive on one of its hosts; None without a reason.

    ``table`` has all processes of this machine; if it is None, the function reads them.
    """
    for part in run.parts:
        if lives(part):
            return f"its agent on {part.host} lives"
        try:
            if process_records.tasks_of(part, table):
                return f"processes of the run are alive on {part.host}; end them with `launch sweep --kill`"
            seen = process_records.is_of_this_boot(part)
        except (OSError, ValueError, KeyError, TypeError):  # a damaged record
            seen = False
        if not seen and now - _written_at(part.own) < UNSEEN_S:
            return f"no record since this machine booted shows that the run has ended on {part.host}"
    return None


def was_just_used(folder: RunFolder, clocks: Clocks) -> bool:
    """Return whether a run was used within the last hour, according to the modification times of its hosts' files."""
    own = [folder.path, *_folders(folder.path / HOSTS)]
    return any(clocks.here - _written_at(each) < USED_S for each in own)


def _written_at(own: Path) -> float:
    """Return the time at which a host's own files of a run were last written."""
    paths = [str(own), *(entry.path for entry in os.scandir(str(own)))] if own.is_dir() else []
    return max((os.lstat(path).st_mtime for path in paths if os.path.lexists(path)), default=0.0)


def _plans(run: Known) -> str:
    """Return the requests to the run's hosts as text, in which the names of other runs can be found."""
    found = []
    for part in run.parts:
        try:
            found.append(read_at_most(part.own / plan_file.PLAN, LARGEST_PLAN).decode(errors="replace"))
        except (OSError, ValueError):
            continue
    return "\n".join(found)


def _newest_with_checkpoint(runs: Sequence[Known]) -> Iterator[str]:
    names: Set[str] = set()
    for run in runs:
        if run.name not in names and any(_has_checkpoint(part) for part in run.parts):
            names.add(run.name)
            yield run.run


def _has_checkpoint(part: RunFolder) -> bool:
    return bool(stored.checkpoints(part.checkpoint) or stored.checkpoints(part.replica))


UNUSED_S = 7 * 24 * 3600.0
_HASH = re.compile(r"[0-9a-f]{16}")


class Unused(NamedTuple):
    """A folder of shipped code that no run uses."""

    path: Path
    bytes: int


def unused_code(workdir: Path, used: Collection[str], now: float) -> List[Unused]:
    """Return the old folders of shipped code that no live run uses, and that no process of this user works in.

    ``used`` has the hashes of the code that live runs use.
    """
    worked_in = _worked_in()
    return [
        Unused(path, sum(os.lstat(each).st_blocks * BLOCK for each in _files(path)))
        for path in sorted((workdir / "code").glob("*"))
        if _HASH.fullmatch(path.name) and path.name not in used and not path.is_symlink()
        and is_old(path, now) and not any(_is_below(each, path) for each in worked_in)
    ]  # fmt: skip


def is_old(path: Path, now: float) -> bool:
    """Return whether no verb or agent has used a folder of code for a week. Each use renews the folder's time."""
    times = [os.lstat(str(each)).st_mtime for each in (path, path / MANIFEST) if os.path.lexists(str(each))]
    return now - max(times, default=now) > UNUSED_S


def _worked_in() -> Set[str]:
    """Return the working folders of this user's processes: a verb of an agent works in its code's folder."""
    found = set()
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found.add(os.readlink(f"/proc/{name}/cwd"))
            except OSError:  # another user's process, or an ended one
                continue
    return found


def _is_below(path: str, folder: Path) -> bool:
    real = os.path.realpath(str(folder))
    return path == real or path.startswith(f"{real}/")


def _files(folder: Path) -> Iterator[str]:
    for parent, _, names in os.walk(str(folder)):
        yield from (os.path.join(parent, name) for name in names)
