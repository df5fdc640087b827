"""The newest spans (timed phases and steps) of a host's tasks, for the verb ``flight`` and for a diagnosis."""

from dataclasses import dataclass, field
from typing import List, Optional


@dataclass(frozen=True)
class Exchanged:
    """The amounts that a worker exchanges with one ps in every step: see ``PsExchange`` in ``flight_records``."""

    pushes: int
    bytes: int


@dataclass(frozen=True)
class Current:
    """The activity of a task, as its newest sign of life shows it; this sign is ``age_s`` seconds old.

    ``asked_s`` is the number of seconds for which the task has asked the ps whether the step waits for this task; 0
    before it asks.
    ``cluster.protocol.heartbeat.Sign`` documents the other fields.
    """

    phase: str
    phase_s: float
    owes: Optional[bool] = None
    age_s: float = 0.0
    asked_s: float = 0.0


@dataclass(frozen=True)
class Flight:
    """The newest spans of one task, column by column, oldest first.

    Attributes:
      task: the name of the task, such as ``worker:1``.
      read_at: the time of reading, in seconds since 1970 by the host's clock.
      why_none: the reason why no spans exist; None where spans exist.
      began: the beginnings of the spans, in seconds since 1970 by the host's clock.
      took_s: the durations of the spans, in seconds.
      longest_ps, longest_s: the two parts of ``longest`` in ``cluster.protocol.flight_records.Span``.
      attempt, phase, step, waited_s, whole: see the same class; ``whole`` is its ``is_whole``.
      exchanged: the exchange of every step with each ps, in the order of the indices of ps.
      torn: the number of records that are damaged or only partly written.
      earlier: the number of records from before the host's last boot.
      now: the task's current activity; None where it gives no sign of life.
    """

    task: str
    read_at: float
    why_none: Optional[str] = None
    attempt: List[int] = field(default_factory=list)
    phase: List[str] = field(default_factory=list)
    step: List[int] = field(default_factory=list)
    began: List[float] = field(default_factory=list)
    took_s: List[float] = field(default_factory=list)
    waited_s: List[Optional[float]] = field(default_factory=list)
    longest_ps: List[Optional[int]] = field(default_factory=list)
    longest_s: List[Optional[float]] = field(default_factory=list)
    whole: List[bool] = field(default_factory=list)
    exchanged: List[Exchanged] = field(default_factory=list)
    torn: int = 0
    earlier: int = 0
    now: Optional[Current] = None


@dataclass(frozen=True)
class HostFlights:
    """The spans of the tasks of a host.

    ``run`` is None where the host knows no such run. ``time`` is the time of reading by the host's clock, in seconds
    since 1970.
    """

    run: Optional[str]
    time: float
    flights: List[Flight] = field(default_factory=list)
