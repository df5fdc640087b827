"""The newest spans of the tasks of a host, for the verb ``flight`` and for a diagnosis."""

from dataclasses import dataclass, field
from typing import List, Optional


@dataclass(frozen=True)
class Exchanged:
    """The exchange of every step of a worker with one ps, as ``cluster.protocol.flight_records`` defines it."""

    pushes: int
    bytes: int


@dataclass(frozen=True)
class Current:
    """The activity of a task by its newest sign of life, which is ``age_s`` seconds old.

    ``asked_s`` is the time for which the task has asked the ps whether the step waits for it; 0 before it asks.
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
      task: ``worker:1``.
      read_at: the time of reading, in seconds since 1970 by the host's clock.
      why_none: the reason why no spans exist; None where spans exist.
      began: the beginnings of the spans, in seconds since 1970 by the host's clock.
      took_s, waited_s, longest_ps, longest_s, whole: see ``cluster.protocol.flight_records.Span``.
      exchanged: the exchange of every step with each ps, in the order of the indices of ps.
      torn: the number of torn records.
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
    """The spans of the tasks of a host, and the time of reading by its clock."""

    run: Optional[str]
    time: float
    flights: List[Flight] = field(default_factory=list)
