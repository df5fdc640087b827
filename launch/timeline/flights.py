"""The spans of every task of a run on one clock, from the answers of its hosts."""

import math
from dataclasses import dataclass
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence

from cluster.protocol.flight_records import PHASES, SLOTS, Span, Wait
from cluster.spec.model import Spec
from launch.agent.wire.flight import Current, Flight
from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from launch.timeline.clock_shifts import ClockShift, Shift, shifts

SILENT_S = 5.0  # a task sends a heartbeat every second


class HostSpans(NamedTuple):
    """The spans of a host's tasks, and its clock compared with the launcher's; None if not measured."""

    flights: List[Flight]
    clock: Optional[ClockShift] = None


@dataclass(frozen=True)
class TaskLine:
    """One task on the time line.

    Attributes:
      flight: the answer of the task's host.
      until: the time at which the host read the spans, on the clock of the reference.
      error_s: the largest error of these times on the clock of the reference.
      spans: the task's spans on that clock, oldest first.
      now: the task's current activity; None where the task sends no heartbeat, or has ended.
      status: the task's status from the lead.
    """

    flight: Flight
    host: str
    until: float
    error_s: float
    spans: Sequence[Span] = ()
    now: Optional[Current] = None
    status: Optional[TaskStatus] = None

    @property
    def name(self) -> str:
        """Return the name of the task: ``worker:1``."""
        return self.flight.task

    @property
    def role(self) -> str:
        """Return the role of the task: ``worker``."""
        return self.name.partition(":")[0]

    @property
    def gives_signs(self) -> bool:
        """Return whether the task has sent a heartbeat recently."""
        return self.now is not None and self.now.age_s < SILENT_S

    @property
    def title(self) -> str:
        """Return the name of the task with its host: ``worker:1@gpu02``."""
        return f"{self.name}@{self.host}"


@dataclass(frozen=True)
class TimeLine:
    """All tasks, on the clock of the host ``reference``."""

    reference: str
    lines: List[TaskLine]

    @property
    def until(self) -> float:
        """Return the end of the time line: now while a task sends heartbeats, else the end of the newest span."""
        seen = [line.until for line in self.lines if line.gives_signs]
        return max(seen or [span.ended for line in self.lines for span in line.spans[-1:]], default=0.0)


def has_common_steps(spec: Spec) -> bool:
    """Return whether every step of a worker ends with a gradient of every other worker."""
    train = spec.train
    return spec.job is not None and train.mode == "sync" and train.sync != "stock" and not train.backup_workers


def time_line(
    answers: Mapping[str, HostSpans], status: Optional[RunStatus], chief: str, common_steps: bool
) -> TimeLine:
    """Return the time line from the answers of all hosts.

    Args:
      chief: the host whose clock the time line uses; without an answer from it, the first host's clock is used.
      common_steps: see ``has_common_steps``.
    """
    reference = chief if chief in answers else next(iter(answers), chief)
    spans = {host: [spans_of(each) for each in answer.flights] for host, answer in answers.items()}
    clocks = {host: answer.clock for host, answer in answers.items() if answer.clock is not None}
    by_host = shifts(spans if common_steps else {host: [] for host in spans}, clocks, reference)
    known = {task.name: task for task in status.tasks} if status else {}
    lines = [
        _line(host, flight, of_task, by_host[host], known.get(flight.task))
        for host in answers
        for flight, of_task in zip(answers[host].flights, spans[host])
    ]
    order: Dict[str, int] = {name: place for place, name in enumerate(known)}
    return TimeLine(reference, sorted(lines, key=lambda line: order.get(line.name, len(order))))


def _line(host: str, flight: Flight, spans: Sequence[Span], shift: Shift, status: Optional[TaskStatus]) -> TaskLine:
    moved = [span._replace(began=span.began + shift.seconds, ended=span.ended + shift.seconds) for span in spans]
    lives = status is None or status.state in ("starting", "running")
    until = flight.read_at + shift.seconds
    return TaskLine(flight, host, until, shift.error_s, moved, now=flight.now if lives else None, status=status)


def spans_of(flight: Flight) -> List[Span]:
    """Return the newest spans in a host's answer, without invalid ones."""
    columns = zip(
        flight.attempt, flight.phase, flight.step, flight.began, flight.took_s, flight.waited_s, flight.longest_ps,
        flight.longest_s, flight.whole,
    )  # fmt: skip
    return [
        Span(
            number=number,
            attempt=attempt,
            phase=phase,
            step=step,
            began=began,
            ended=began + max(0.0, took_s),
            waited_s=waited_s,
            longest=None if ps is None or longest_s is None else Wait(ps, longest_s),
            is_whole=whole,
        )
        for number, (attempt, phase, step, began, took_s, waited_s, ps, longest_s, whole) in enumerate(columns)
        if phase in PHASES and math.isfinite(began + took_s + (waited_s or 0.0))
    ][-SLOTS:]
