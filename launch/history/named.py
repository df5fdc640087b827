"""Find the run that ``--run`` names, among the runs of every name on the hosts of a file."""

import difflib
import shlex
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from launch.errors import CannotStart, HostProblem, UsageError
from launch.fleet import Fleet
from launch.history.listing import ask_for_runs, merged
from launch.status.run_record import KnownRun, RunsAnswer
from launch.view.console import fold

MOST = 3  # names in an error


def find(fleet: Fleet, run: str) -> Tuple[Dict[str, Dict[str, Any]], List[HostProblem]]:
    """Return the answers of the hosts that took part in a run, as ``find`` gives them for the newest.

    Raises:
      CannotStart: no host knows the run, and some cannot be asked.
      UsageError: no host knows the run; the text has the names that are near.
    """
    answers, problems = ask_for_runs(fleet)
    told = {
        host: _described(each) for host, answer in answers.items() for each in answer.runs if each.record.run == run
    }
    # A host that only keeps copies of its checkpoints does not know who leads it.
    told = {host: each for host, each in told.items() if each["lead"] is not None} or told
    if not told and problems:
        raise CannotStart(problems)
    if not told:
        raise UsageError(unknown(fleet, run, answers))
    return told, problems


def _described(known: KnownRun) -> Dict[str, Any]:
    record = known.record
    return {
        "run": record.run, "generation": known.generation, "lives": known.lives, "lead": record.lead,
        "hosts": list(record.hosts),
    }  # fmt: skip


def unknown(fleet: Fleet, run: str, answers: Mapping[str, RunsAnswer]) -> str:
    """Return the message about a name that no run has."""
    near = nearest(run, [record.run for record in merged(answers)])
    known = f"the nearest names: {', '.join(near)}" if near else "no run has been there"
    listed = f"list every run with `launch runs {shlex.quote(str(fleet.spec.path))}`"
    return f"--run: expected a run on {fold(fleet.hosts)}, found '{run}'; {'; '.join([known, listed])}"


def nearest(run: str, names: Sequence[str]) -> List[str]:
    """Return the names that may be meant: those that have the text in them, else the alike, else the first."""
    having = [name for name in names if run and run in name]
    return (having or difflib.get_close_matches(run, names, MOST) or list(names))[:MOST]
