"""A run as a host remembers it: a row of ``launch runs``, and the host's answer to ``runs``."""

from dataclasses import dataclass, field
from typing import List, Optional

from launch.status.meanings import means, means_each


@dataclass(frozen=True)
class RunRecord:
    """One of ``runs`` in ``runs --json``. Everything from ``state`` on is the lead's word, by its own clock."""

    run: str = field(metadata=means("Full name of the run: its name and the time of its start."))
    name: str = field(metadata=means("Name of the run, without the time."))
    file: Optional[str] = field(
        default=None,
        metadata=means("Hosts file of the run, with the options that verbs need beside it; null where none is known."),
    )
    user: Optional[str] = field(
        default=None,
        metadata=means(
            "User and machine that started the run: anna@desk7. For a run of an older version, the user on the host."
        ),
    )
    lead: Optional[str] = field(
        default=None, metadata=means("Host whose agent leads the run; null where none is known.")
    )
    hosts: List[str] = field(
        default_factory=list,
        metadata=means_each("Host that takes part, the lead first; none where the lead's host did not answer."),
    )
    state: Optional[str] = field(
        default=None,
        metadata=means(
            "State of the run: starting, running, succeeded, failed or stopped; null where the lead's host did not"
            " answer, or has no record."
        ),
    )
    cause: Optional[str] = field(
        default=None, metadata=means("First cause of the failure or stop in one line; else null.")
    )
    started: Optional[str] = field(
        default=None,
        metadata=means(
            "Start of the run by the clock of the lead's host, in ISO 8601, UTC: 2026-11-20T15:59:02+00:00; null as for"
            " state."
        ),
    )
    ended: Optional[str] = field(
        default=None, metadata=means("End of the run, by the same clock; null before the end, and as for state.")
    )
    updated: Optional[str] = field(
        default=None, metadata=means("Time of the lead's newest record, by the same clock; null as for state.")
    )
    global_step: Optional[int] = field(
        default=None, metadata=means("Newest global step that a worker reported; null before the first.")
    )
    steps: Optional[int] = field(
        default=None, metadata=means("Global step at which the run stops; null for a command.")
    )
    incidents: int = field(default=0, metadata=means("Number of incidents."))
    effective_share: Optional[float] = field(
        default=None,
        metadata=means(
            "Effective training time as a share of all time, 0 to 1; null at the beginning, for a command, and as for"
            " state."
        ),
    )


@dataclass(frozen=True)
class KnownRun:
    """A run that a host took part in.

    Attributes:
      generation: a number above those of the runs of this name before it.
      lives: whether its agent or keeper lives on this host.
    """

    generation: int
    lives: bool
    record: RunRecord


@dataclass(frozen=True)
class RunsAnswer:
    """The answer to runs: those of every name, the one that began last first."""

    runs: List[KnownRun]
