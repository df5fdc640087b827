"""The runs of a name on this host, and the run that a verb means: the live run, else the newest run.

No clock shows which run is the newest: launchers run in two time zones, clocks jump, and an hour occurs twice in
autumn. So each run has a *generation*, a number above the generations of all runs of its name that its hosts knew at
its start. The launcher computes the generation (``launch.run.draft``), and each host stores the generation in the run's
folder.
"""

import calendar
import contextlib
import time
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

from launch.agent.errors import AgentError
from launch.agent.state import boot_unit, locks, plan_file, process_records
from launch.agent.state.run_folder import RunFolder, expand, name_of
from launch.agent.wire.verb_requests import RunReference

GENERATION = "generation.json"
ENDED_FOR_GOOD = "ended_for_good.json"


class EndedForGood(AgentError):
    """The error that a user has ended this run, or the run that it would succeed."""


def runs(workdir: Path, name: str, host: str) -> List[RunFolder]:
    """Return the runs of this name that this host took part in; the run that a verb means comes first."""
    folder = workdir / "runs"
    if not folder.is_dir():
        return []
    names = [path.name for path in folder.iterdir() if name_of(path.name) == name and path.name != name]
    found = [run for run in (RunFolder(workdir, each, host) for each in names) if run.own.is_dir()]
    holder = _holder(workdir, name, host)
    return sorted(found, key=lambda run: (_lives(run, holder), *_order(run)), reverse=True)


def every_run(workdir: Path) -> List[RunFolder]:
    """Return the runs of every name, of all hosts that share the folder, newest first."""
    found = [path for path in (workdir / "runs").glob("[!.]*/hosts/*") if path.is_dir()]
    return sorted((RunFolder(workdir, path.parent.parent.name, path.name) for path in found), key=_order, reverse=True)


def newest(reference: RunReference) -> Optional[RunFolder]:
    """Return the run that the reference names, else the live or newest run of its name; None if no run exists."""
    workdir = expand(reference.workdir)
    if reference.run:
        folder = RunFolder(workdir, reference.run, reference.host)
        return folder if folder.own.is_dir() else None
    found = runs(workdir, reference.name, reference.host)
    return found[0] if found else None


def end_for_good(reference: RunReference, by: str) -> None:
    """Record that a user has ended the newest run: an agent that is about to begin leaves, and no run succeeds it.

    An agent that starts records itself, then looks for this record. The verb that ends the run writes this record, then
    looks for agents. So one of the two finds the other. A run that appears meanwhile gets a record, too.
    """
    before, folder = None, newest(reference)
    while folder is not None and folder.run != before:
        if not folder.note(ENDED_FOR_GOOD, {"by": by}, durable=True):
            with contextlib.suppress(OSError):
                (folder.own / ENDED_FOR_GOOD).write_text("")  # a full disk has room for a name
        before, folder = folder.run, newest(reference)


def refuse_ended(folder: RunFolder, follows: Optional[str] = None) -> None:
    """Refuse the first start of a run that a user has ended, or that ``follows`` such a run. Raises EndedForGood."""
    for run in filter(None, [folder.run, follows]):
        ended = RunFolder(folder.workdir, run, folder.host)
        if ended.has(ENDED_FOR_GOOD):
            by = (ended.read_whole(ENDED_FOR_GOOD) or {}).get("by", "a user")
            raise EndedForGood(
                f"{run} was ended here by {by}" + ("" if run == folder.run else ", so no run succeeds it")
            )


def find(reference: RunReference) -> Dict[str, Any]:
    """Report what this host knows of the runs of a name.

    "run" is the run that a verb means, None where no run exists. "lives" is whether this run is alive on this host, and
    "lead" is its lead's host. "highest" is the highest generation of any run, and "taken" whether a run has the name
    ``reference.run``. "boot_obstacle" is the reason why a boot of this host would not start an agent; None where a boot
    would.
    """
    found = runs(expand(reference.workdir), reference.name, reference.host)
    newest_one = described(found[0]) if found else {"run": None}
    taken = any(each.run == reference.run for each in found)
    return {
        **newest_one,
        "highest": max(map(generation, found), default=0),
        "taken": taken,
        "boot_obstacle": boot_unit.obstacle(),
    }


def described(folder: RunFolder) -> Dict[str, Any]:
    """Describe a run as {"run", "generation", "lives", "lead", "hosts"}.

    "lead" is None where this host had no part in the run. "hosts" are the hosts of the run, as the lead's request names
    them.
    """
    plan = plan_file.read(folder)
    return {
        "run": folder.run,
        "generation": generation(folder),
        "lives": lives(folder),
        "lead": plan.lead.host if plan.lead else None,
        "hosts": list(plan.run_plan.hosts) if plan.run_plan else [],
    }


def _holder(workdir: Path, name: str, host: str) -> Optional[str]:
    """Return the run that holds its name on this host."""
    return (locks.lock_holder(workdir, name, host) or {}).get("run")


def _lives(folder: RunFolder, holder: Optional[str]) -> bool:
    """Return whether the run's agent or keeper lives on this host, even where its lock was removed."""
    return folder.run == holder or bool(process_records.agent_of(folder))


def lives(folder: RunFolder) -> bool:
    """Return whether the run's agent or keeper lives on this host."""
    return _lives(folder, _holder(folder.workdir, name_of(folder.run), folder.host))


def note_generation(folder: RunFolder, number: int, durable: bool = False) -> None:
    """Store ``number`` as the run's generation. Raises OSError."""
    folder.write(GENERATION, {"generation": number}, durable)


def generation(folder: RunFolder) -> int:
    """Return the run's generation; where no record has the generation, the time in the run's name."""
    number = (folder.read_whole(GENERATION) or {}).get("generation")
    return number if isinstance(number, int) else stamp(folder.run)


def stamp(run: str) -> int:
    """Return the time in a run's name, in seconds since 1970; 0 where the name has no valid time."""
    try:
        return calendar.timegm(time.strptime(run[-15:], "%Y%m%d-%H%M%S"))
    except ValueError:
        return 0


def _order(folder: RunFolder) -> Tuple[int, str]:
    return generation(folder), folder.run
