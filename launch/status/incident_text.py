"""An incident in plain words, from its status."""

from typing import List, Optional, Sequence

from cluster.protocol.quantity import quantity
from launch.status.incident import IncidentStatus

_ENDS = {
    "signal": "killed by {signal}",
    "out-of-memory": "killed by {signal}: out of memory",
    "exit": "left with exit code {exit_code}",
}
LONGEST = 200  # characters of a cause


def lines(incidents: Sequence[IncidentStatus], most: int = 10) -> List[str]:
    """Return the number of incidents, then the first, the open and the newest, in lines.

    A single incident has one line: ``1 incident: …``.
    """
    if not incidents:
        return []
    count = incidents[-1].number
    if count == 1:
        return [f"1 incident: {sentence(incidents[0])}"]
    ranked = sorted(incidents, key=lambda each: (each.number == incidents[0].number, each.open, each.number))
    shown = sorted(ranked[-most:], key=lambda each: each.number)
    left_out = f", of which {len(shown)} are shown" if count > len(shown) else ""
    return [f"{count} incidents{left_out}:", *(f"  {each.number}. {sentence(each)}" for each in shown)]


def sentence(incident: IncidentStatus) -> str:
    """Return an incident in one sentence.

    Example: ``worker:1@gpu02 killed by SIGKILL at step 412, training again after 4.1 s, nothing lost``.
    """
    at = "" if incident.step is None else f" at step {incident.step}"
    return ", ".join([f"{what(incident)}{at}", *_followed(incident), *_went_on(incident)])


def what(incident: IncidentStatus) -> str:
    """Return the event itself: ``worker:1@gpu02 killed by SIGKILL``."""
    who, ending = incident.title, _ending(incident)
    if ending is not None:
        return f"{who} {ending}: {_cut(incident.error)}" if incident.error else f"{who} {ending}"
    cause = _cut(incident.cause or incident.kind)
    return f"{who}: {cause}" if who else cause


def _ending(incident: IncidentStatus) -> Optional[str]:
    """Return how a process ended, where its error is known apart from that; else None."""
    if incident.error is None or incident.exit_code is None:
        return None
    ending = _ENDS.get(incident.kind) if incident.signal or incident.kind == "exit" else None
    return ending and ending.format(signal=incident.signal, exit_code=incident.exit_code)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "\u2026"


def _followed(incident: IncidentStatus) -> List[str]:
    if not incident.followed_count:
        return []
    who = list(dict.fromkeys(entry.title for entry in incident.followed))
    names = ", ".join(who[:3]) + (", \u2026" if len(who) > 3 else "")
    times = incident.followed_count
    return [f"{quantity(times, 'more failure')} followed from it ({names})"]


def _went_on(incident: IncidentStatus) -> List[str]:
    restarted_s = incident.restarted_s
    if incident.kind == "cut-short":
        return []  # nobody waits for it to come back
    if incident.again_s is not None:
        return [f"{_back(incident)} after {incident.again_s:.1f} s", *_lost(incident)]
    if restarted_s is None:
        return ["not back since"]
    known = "not back since" if incident.open else "unknown whether it continued from a checkpoint"
    return [f"restarted after {restarted_s:.1f} s", known]


def _back(incident: IncidentStatus) -> str:
    if incident.lost_steps and incident.resumed_from == 0:
        return "began again from step 0"
    return "back" if incident.lost_seconds is None else "training again"


def _lost(incident: IncidentStatus) -> List[str]:
    lost, seconds = incident.lost_steps, incident.lost_seconds
    if not lost:
        return [] if seconds is None else ["nothing lost"]
    until = [] if seconds is None else [f"{seconds:.1f} s until they were taken again"]
    return [f"{quantity(lost, 'step')} lost", *until]
