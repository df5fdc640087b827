"""The status of one incident: the event, its consequences, and the launcher's actions; the same in plain words."""

from dataclasses import dataclass, field
from typing import List, Optional, Sequence

from cluster.protocol.quantity import quantity
from launch.status.task import title_of


@dataclass(frozen=True)
class Consequence:
    """An item of ``followed`` of an incident: an event that the incident caused.

    Attributes:
      at_s: Seconds from the start of the run to the event.
      kind: Kind of the event, one of an incident's kinds.
      role: Role of the affected task; null where the event is about a host.
      index: Index of the affected task within its role; null where the event is about a host.
      host: Host of the event.
      attempt: Attempt of the affected task, from 0; null where the event is about a host.
      exit_code: Exit code of the process, or minus the number of the fatal signal; null where no process ended.
      cause: Cause of the event in one line; null where none is known.
      log: Path of that attempt's log, on its host; null where there is none.
    """

    at_s: float = 0.0
    kind: str = ""
    role: Optional[str] = None
    index: Optional[int] = None
    host: Optional[str] = None
    attempt: Optional[int] = None
    exit_code: Optional[int] = None
    cause: Optional[str] = None
    log: Optional[str] = None

    @property
    def title(self) -> str:
        """Return the affected task with its host, ``worker:1@gpu02``; for an event about a host, ``gpu02``."""
        return title_of(self.role, self.index, self.host)


@dataclass(frozen=True)
class Deed:
    """An item of ``did`` of an incident: an action of the launcher.

    Attributes:
      at_s: Seconds from the start of the run to the action.
      what: Action, in words.
    """

    at_s: float = 0.0
    what: str = ""


@dataclass(frozen=True)
class IncidentStatus:
    """An item of ``incidents`` in ``status --json`` and ``report.json``.

    Attributes:
      number: Number of the incident, from 1. The last incident's number is the count.
      kind: Kind of the incident; docs/faults.md lists the values.
      open: True until the task is back and training has passed the newest step from before the incident.
      at_s: Seconds from the start of the run to the event.
      role: Role of the affected task; null where the incident is about a host or the run.
      index: Index of the affected task within its role; null if role is null.
      host: Host of the incident; null where the incident is about the run.
      attempt: Attempt of the affected task, from 0; null if role is null.
      step: Newest global step at that time; null before the first.
      cause: Cause of the incident in one line; null where none is known.
      error: Error that ended the process, from its outcome or its log; empty where neither has an error. null where the
        incident is about a host or the run, and in reports of older versions.
      exit_code: Exit code of the process, or minus the number of the fatal signal; null where no process ended.
      signal: Name of the signal that ended the process, such as SIGKILL; null for none.
      log: Path of that attempt's log, on its host; null where there is none.
      lines: Last lines of that log.
      stack: Stack of a frozen task; or the frames of the author's own files in the traceback of a job's error, empty if
        no frame is; else null.
      followed[]: Consequences of the incident. A long list keeps the first and the newest.
      followed_count: Number of consequences, including those that followed omits.
      did[]: Actions of the launcher. A long list keeps the first and the newest.
      restarted_s: Seconds from the incident to the start of the task's next process; null before, and without a
        restart.
      again_s: Seconds from the incident until the task trained again; null before, and for a program without progress.
      resumed_from: Global step that training went back to; null where training did not go back, or the step is unknown.
      lost_steps: Number of steps that training went back; null until it has gone back or again_s is known, and for a
        program without progress.
      lost_seconds: Seconds until training made a step newer than all steps before the incident; null while open is
        true, and for a program without progress.
    """

    number: int = 0
    kind: str = ""
    open: bool = False
    at_s: float = 0.0
    role: Optional[str] = None
    index: Optional[int] = None
    host: Optional[str] = None
    attempt: Optional[int] = None
    step: Optional[int] = None
    cause: Optional[str] = None
    error: Optional[str] = None
    exit_code: Optional[int] = None
    signal: Optional[str] = None
    log: Optional[str] = None
    lines: List[str] = field(default_factory=list)
    stack: Optional[str] = None
    followed: List[Consequence] = field(default_factory=list)
    followed_count: int = 0
    did: List[Deed] = field(default_factory=list)
    restarted_s: Optional[float] = None
    again_s: Optional[float] = None
    resumed_from: Optional[int] = None
    lost_steps: Optional[int] = None
    lost_seconds: Optional[float] = None

    @property
    def title(self) -> str:
        """Return the affected task with its host, ``worker:1@gpu02``.

        For an incident about a host, return ``gpu02``; for an incident about the run, return "".
        """
        return title_of(self.role, self.index, self.host)


_ENDS = {
    "signal": "killed by {signal}",
    "out-of-memory": "killed by {signal}: out of memory",
    "exit": "left with exit code {exit_code}",
}
LONGEST = 200  # characters of a cause


def lines(incidents: Sequence[IncidentStatus], most: int = 10) -> List[str]:
    """Return lines: the number of incidents, then the first incident, the open incidents and the newest incidents.

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
    """Return the way in which a process ended, where its error is known separately; else None."""
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
    return [f"{quantity(incident.followed_count, 'more failure')} followed from it ({names})"]


def _went_on(incident: IncidentStatus) -> List[str]:
    if incident.kind == "cut-short":
        return []  # no process waits for the task to come back
    if incident.again_s is not None:
        return [f"{_back(incident)} after {incident.again_s:.1f} s", *_lost(incident)]
    restarted = [] if incident.restarted_s is None else [f"restarted after {incident.restarted_s:.1f} s"]
    if restarted and not (incident.open or incident.lost_steps):
        return [*restarted, "unknown whether it continued from a checkpoint"]
    return [*restarted, "not back since", *_lost(incident)]


def _back(incident: IncidentStatus) -> str:
    if incident.lost_steps and incident.resumed_from == 0:
        return "began again from step 0"
    if incident.lost_seconds is None:
        return "back"
    return "evaluating again" if incident.role == "evaluator" else "training again"


def _lost(incident: IncidentStatus) -> List[str]:
    lost, seconds = incident.lost_steps, incident.lost_seconds
    if not lost:
        return [] if seconds is None else ["nothing lost"]
    until = [] if seconds is None else [f"{seconds:.1f} s until they were taken again"]
    return [f"{quantity(lost, 'step')} lost", *until]
