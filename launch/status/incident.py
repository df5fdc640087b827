"""The status of one incident: what went wrong, what followed from it, and what was done."""

from dataclasses import dataclass, field
from typing import List, Optional

from launch.status.meanings import means
from launch.status.task_names import title_of

_AT_S = means("when, in seconds since the run began")


@dataclass(frozen=True)
class Consequence:
    """One of ``followed`` of an incident: what went wrong only because of it."""

    at_s: float = field(default=0.0, metadata=_AT_S)
    kind: str = field(default="", metadata=means("its kind, as of an incident"))
    role: Optional[str] = field(
        default=None, metadata=means("of the task that it happened to; null where it is of a host")
    )
    index: Optional[int] = field(default=None, metadata=means("of that task"))
    host: Optional[str] = field(default=None, metadata=means("where"))
    attempt: Optional[int] = field(default=None, metadata=means("of that task, from 0"))
    exit_code: Optional[int] = field(default=None, metadata=means("as of an incident"))
    cause: Optional[str] = field(default=None, metadata=means("as of an incident"))
    log: Optional[str] = field(default=None, metadata=means("as of an incident"))

    @property
    def title(self) -> str:
        """Return ``worker:1@gpu02``, or the host alone."""
        return title_of(self.role, self.index, self.host)


@dataclass(frozen=True)
class Deed:
    """One of ``did`` of an incident."""

    at_s: float = field(default=0.0, metadata=_AT_S)
    what: str = field(default="", metadata=means("what was done about it, in words"))


@dataclass(frozen=True)
class IncidentStatus:
    """One of ``incidents`` in ``status --json`` and ``report.json``."""

    number: int = field(
        default=0,
        metadata=means("of what went wrong, which, from 1; that of the last one is how many there were"),
    )
    kind: str = field(default="", metadata=means("one of those of docs/faults.md"))
    open: bool = field(
        default=False,
        metadata=means("whether its task has not come back yet, or training has no step newer than before"),
    )
    at_s: float = field(default=0.0, metadata=_AT_S)
    role: Optional[str] = field(default=None, metadata=means("of the task; null where it is of a host, or of the run"))
    index: Optional[int] = field(default=None, metadata=means("of the task"))
    host: Optional[str] = field(default=None, metadata=means("where; null where it is of the run"))
    attempt: Optional[int] = field(default=None, metadata=means("of the task, from 0"))
    step: Optional[int] = field(default=None, metadata=means("the newest global step then; null before the first"))
    cause: Optional[str] = field(default=None, metadata=means("what happened, in one line"))
    exit_code: Optional[int] = field(default=None, metadata=means("negative: the signal; null where no process ended"))
    signal: Optional[str] = field(default=None, metadata=means("its name, SIGKILL; null for none"))
    log: Optional[str] = field(default=None, metadata=means("of that attempt, on its host"))
    lines: List[str] = field(default_factory=list, metadata=means("the last of that log"))
    stack: Optional[str] = field(default=None, metadata=means("of a task that was frozen; else null"))
    followed: List[Consequence] = field(
        default_factory=list, metadata=means("what only followed from it; of much, the first and the newest")
    )
    followed_count: int = field(default=0, metadata=means("how much followed, with what is left out of followed"))
    did: List[Deed] = field(
        default_factory=list, metadata=means("what was done about it; of much, the first and the newest")
    )
    restarted_s: Optional[float] = field(
        default=None,
        metadata=means("seconds until its next process was there; null before, and where nothing was started again"),
    )
    again_s: Optional[float] = field(
        default=None,
        metadata=means("seconds until the task took part in training again; null before, and for a command"),
    )
    resumed_from: Optional[int] = field(
        default=None,
        metadata=means("the step that the global step went back to; null where it did not, or is not known to have"),
    )
    lost_steps: Optional[int] = field(
        default=None,
        metadata=means("how far the global step went back; null before again_s, and for a command"),
    )
    lost_seconds: Optional[float] = field(
        default=None,
        metadata=means(
            "how long training stood, until there was a newer step than any before; null while open, and for a command"
        ),
    )

    @property
    def title(self) -> str:
        """Return ``worker:1@gpu02``, ``gpu02``, or nothing."""
        return title_of(self.role, self.index, self.host)
