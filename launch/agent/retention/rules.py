"""The decision which runs of a name to remove: a pure function of the runs' properties and of the name's rule."""

from typing import Dict, List, NamedTuple, Optional, Sequence

from cluster.protocol.quantity import quantity
from cluster.protocol.settings import Keep

DAY_S = 24 * 3600.0
GIB = 1 << 30


class PastRun(NamedTuple):
    """A run on this host, with the properties that decide on its removal.

    Attributes:
      run: the full name of the run.
      bytes: the disk space of its folder.
      age_s: the seconds since its last use.
      has_results: whether the run has left more than logs and records.
      needed: the reason why the run must stay under any rule; None for no reason.
    """

    run: str
    bytes: int
    age_s: float
    has_results: bool
    needed: Optional[str] = None


class PruneDecision(NamedTuple):
    """The runs to remove, and the runs that exceed a bound but must stay: {run: the exceeded bound} for both."""

    going: Dict[str, str]
    spared: Dict[str, str]


def decide(runs: Sequence[PastRun], rule: Keep) -> PruneDecision:
    """Return which of ``runs`` to remove, and why. The runs have one name, and are sorted, the newest first."""
    beyond: Dict[str, str] = {}
    for place, run in enumerate(runs):
        why = _why(place, run, rule)
        if why is not None and not _is_spared(run, rule):
            beyond[run.run] = why
    staying = [run for run in runs if run.run not in beyond or run.needed is not None]
    for run in _too_large(staying, rule):
        beyond.setdefault(run.run, f"the runs of its name exceed {rule.gib:g} GiB")
    needed = {run.run for run in runs if run.needed is not None}
    return PruneDecision(
        {run: why for run, why in beyond.items() if run not in needed},
        {run: why for run, why in beyond.items() if run in needed},
    )


def may_go(place: int, began_s: float, rule: Keep) -> bool:
    """Return whether a run may exceed a bound of the rule. Its folder need not be measured for this.

    ``place`` is 0 for the newest run of the name; ``began_s`` is the number of seconds since the run's start.
    """
    return (
        rule.gib is not None
        or (rule.runs is not None and place >= rule.runs)
        or (rule.days is not None and began_s > rule.days * DAY_S)
    )


def _why(place: int, run: PastRun, rule: Keep) -> Optional[str]:
    if rule.runs is not None and place >= rule.runs:
        return f"more than {quantity(rule.runs, 'run')} of its name"
    if rule.days is not None and run.age_s > rule.days * DAY_S:
        only = ", and it left only logs and records" if rule.spares_results else ""
        return f"not used for {rule.days:g} days{only}"
    return None


def _is_spared(run: PastRun, rule: Keep) -> bool:
    return rule.spares_results and run.has_results


def _too_large(staying: Sequence[PastRun], rule: Keep) -> List[PastRun]:
    """Return the oldest runs whose removal lets the remaining runs fit into the rule's bytes."""
    if rule.gib is None:
        return []
    found: List[PastRun] = []
    left = sum(run.bytes for run in staying)
    for run in reversed(staying):
        if left <= rule.gib * GIB:
            break
        if not _is_spared(run, rule):
            found.append(run)
            left -= run.bytes if run.needed is None else 0
    return found
