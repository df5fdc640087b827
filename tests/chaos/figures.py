"""The table at the end: of each kind of fault how long it took to notice, to go on, and what was lost."""

from statistics import median
from typing import Dict, List, NamedTuple, Optional, Sequence


class Figures(NamedTuple):
    """Of one trial. ``notice_s``: until an incident of the run named it; ``go_on_s``: until there was a step that was
    newer than any before; both from the moment of the fault, None where that was never seen."""

    kind: str
    passed: bool
    notice_s: Optional[float]
    go_on_s: Optional[float]
    lost_steps: int


def table(trials: Sequence[Figures]) -> List[str]:
    """Lines of a table in Markdown."""
    kinds: Dict[str, List[Figures]] = {}
    for trial in trials:
        kinds.setdefault(trial.kind, []).append(trial)
    head = ["| fault | right | to notice: median, worst | to continue: median, worst | steps lost: median, worst |"]
    return [*head, "|---|---|---|---|---|", *(_row(kind, kinds[kind]) for kind in sorted(kinds))]


def _row(kind: str, trials: Sequence[Figures]) -> str:
    right = f"{sum(trial.passed for trial in trials)} of {len(trials)}"
    notice = _seconds([trial.notice_s for trial in trials])
    go_on = _seconds([trial.go_on_s for trial in trials])
    lost = [trial.lost_steps for trial in trials]
    return f"| {kind} | {right} | {notice} | {go_on} | {median(lost):.0f}, {max(lost)} |"


def _seconds(values: Sequence[Optional[float]]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.1f} s, {max(known):.1f} s" if known else "–"
