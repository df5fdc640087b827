"""The status of one incident: what went wrong, what followed from it, and what was done."""

from dataclasses import dataclass, field
from typing import List, Optional

from launch.status.meanings import means
from launch.status.task_names import title_of

_AT_S = means("Seconds from the start of the run to the event.")


@dataclass(frozen=True)
class Consequence:
    """One of ``followed`` of an incident: what went wrong only because of it."""

    at_s: float = field(default=0.0, metadata=_AT_S)
    kind: str = field(default="", metadata=means("Kind of the event, one of an incident's kinds."))
    role: Optional[str] = field(
        default=None, metadata=means("Role of the affected task; null where the event is about a host.")
    )
    index: Optional[int] = field(
        default=None,
        metadata=means("Index of the affected task within its role; null where the event is about a host."),
    )
    host: Optional[str] = field(default=None, metadata=means("Host of the event."))
    attempt: Optional[int] = field(
        default=None, metadata=means("Attempt of the affected task, from 0; null where the event is about a host.")
    )
    exit_code: Optional[int] = field(
        default=None,
        metadata=means("Exit code of the process; negative: minus the signal's number. null where no process ended."),
    )
    cause: Optional[str] = field(
        default=None, metadata=means("Cause of the event in one line; null where none is known.")
    )
    log: Optional[str] = field(
        default=None, metadata=means("Path of that attempt's log, on its host; null where there is none.")
    )

    @property
    def title(self) -> str:
        """Return ``worker:1@gpu02``, or the host alone."""
        return title_of(self.role, self.index, self.host)


@dataclass(frozen=True)
class Deed:
    """One of ``did`` of an incident."""

    at_s: float = field(default=0.0, metadata=_AT_S)
    what: str = field(default="", metadata=means("Action, in words."))


@dataclass(frozen=True)
class IncidentStatus:
    """One of ``incidents`` in ``status --json`` and ``report.json``."""

    number: int = field(
        default=0,
        metadata=means("Number of the incident, from 1. The last incident's number is the count."),
    )
    kind: str = field(default="", metadata=means("Kind of the incident; docs/faults.md lists the values."))
    open: bool = field(
        default=False,
        metadata=means("True until the task is back and training has passed the newest step from before the incident."),
    )
    at_s: float = field(default=0.0, metadata=_AT_S)
    role: Optional[str] = field(
        default=None, metadata=means("Role of the affected task; null where the incident is about a host or the run.")
    )
    index: Optional[int] = field(
        default=None, metadata=means("Index of the affected task within its role; null as for role.")
    )
    host: Optional[str] = field(
        default=None, metadata=means("Host of the incident; null where the incident is about the run.")
    )
    attempt: Optional[int] = field(
        default=None, metadata=means("Attempt of the affected task, from 0; null as for role.")
    )
    step: Optional[int] = field(default=None, metadata=means("Newest global step at that time; null before the first."))
    cause: Optional[str] = field(
        default=None, metadata=means("Cause of the incident in one line; null where none is known.")
    )
    error: Optional[str] = field(
        default=None,
        metadata=means(
            "Error that ended the process, from its outcome or its log, empty where neither has one; null where the"
            " incident is about a host or the run, and in reports of older versions."
        ),
    )
    exit_code: Optional[int] = field(
        default=None,
        metadata=means("Exit code of the process; negative: minus the signal's number. null where no process ended."),
    )
    signal: Optional[str] = field(
        default=None, metadata=means("Name of the signal that ended the process, such as SIGKILL; null for none.")
    )
    log: Optional[str] = field(
        default=None, metadata=means("Path of that attempt's log, on its host; null where there is none.")
    )
    lines: List[str] = field(default_factory=list, metadata=means("Last lines of that log."))
    stack: Optional[str] = field(default=None, metadata=means("Stack of a frozen task; else null."))
    followed: List[Consequence] = field(
        default_factory=list,
        metadata=means("Consequences of the incident. A long list keeps the first and the newest."),
    )
    followed_count: int = field(default=0, metadata=means("Number of consequences, with those that followed omits."))
    did: List[Deed] = field(
        default_factory=list, metadata=means("Actions of the launcher. A long list keeps the first and the newest.")
    )
    restarted_s: Optional[float] = field(
        default=None,
        metadata=means(
            "Seconds from the incident to the start of the task's next process; null before, and without a restart."
        ),
    )
    again_s: Optional[float] = field(
        default=None,
        metadata=means("Seconds from the incident until the task trained again; null before, and for a command."),
    )
    resumed_from: Optional[int] = field(
        default=None,
        metadata=means(
            "Global step that training went back to; null where it did not go back, or where that is unknown."
        ),
    )
    lost_steps: Optional[int] = field(
        default=None,
        metadata=means("Number of steps that training went back; null until again_s is known, and for a command."),
    )
    lost_seconds: Optional[float] = field(
        default=None,
        metadata=means(
            "Seconds until training made a step newer than any before; null while open is true, and for a command."
        ),
    )

    @property
    def title(self) -> str:
        """Return ``worker:1@gpu02``, ``gpu02``, or nothing."""
        return title_of(self.role, self.index, self.host)
