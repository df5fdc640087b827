"""A run as a host remembers it: a row of ``launch runs``, and the host's answer to ``runs``."""

from dataclasses import dataclass, field
from typing import List, Optional


@dataclass(frozen=True)
class RunRecord:
    """One of ``runs`` in ``runs --json``. Everything from ``state`` on is the lead's word, by its own clock.

    Attributes:
      run: Full name of the run: its name and the time of its start.
      name: Name of the run, without the time.
      file: Hosts file of the run, with the options that verbs need beside it; null where none is known.
      user: User and machine that started the run: anna@desk7. For a run of an older version, the user on the host.
      lead: Host whose agent leads the run; null where none is known.
      hosts[]: Host that takes part, the lead first; none where the lead's host did not answer.
      state: State of the run: starting, running, succeeded, failed or stopped; null where the lead's host did not
        answer, or has no record.
      cause: First cause of the failure or stop in one line; else null.
      started: Start of the run by the clock of the lead's host, in ISO 8601, UTC: 2026-11-20T15:59:02+00:00; null as
        for state.
      ended: End of the run, by the same clock; null before the end, and as for state.
      updated: Time of the lead's newest record, by the same clock; null as for state.
      global_step: Newest global step that a worker reported; null before the first.
      steps: Global step at which the run stops; null for a command.
      incidents: Number of incidents.
      effective_share: Effective training time as a share of all time, 0 to 1; null at the beginning, for a command, and
        as for state.
    """

    run: str
    name: str
    file: Optional[str] = None
    user: Optional[str] = None
    lead: Optional[str] = None
    hosts: List[str] = field(default_factory=list)
    state: Optional[str] = None
    cause: Optional[str] = None
    started: Optional[str] = None
    ended: Optional[str] = None
    updated: Optional[str] = None
    global_step: Optional[int] = None
    steps: Optional[int] = None
    incidents: int = 0
    effective_share: Optional[float] = None


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
