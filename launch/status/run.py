"""The status of a run, and the states of a run and of a task, as ``status --json`` has them.

States of a task:

    starting    its process runs, but it has not reported any progress yet
    running     it trains, or serves
    restarting  it failed and waits for its next attempt
    succeeded   it reported so itself (or, for foreign programs, left with exit code 0)
    failed      it ended by itself otherwise, and is not started again
    stopped     the run ended it, or it is a spare that waits
    lost        its host's agent is out of reach, or was and has not been taken back yet
"""

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Optional

from launch.status.incident_status import IncidentStatus
from launch.status.meanings import means
from launch.status.task import TaskStatus

RUN_STATES = ("starting", "running", "succeeded", "failed", "stopped")
ENDED = ("succeeded", "failed", "stopped")  # of a run

TASK_STATES = ("starting", "running", "restarting", "succeeded", "failed", "stopped", "lost")
ALIVE = ("starting", "running", "restarting")  # of a task


def utc(moment: float) -> str:
    """Return seconds since 1970 in ISO 8601, wherever host and reader are: ``2026-11-20T15:59:02+00:00``."""
    return datetime.fromtimestamp(moment, timezone.utc).isoformat(timespec="seconds")


def is_over(recorded: Optional[Mapping[str, Any]]) -> bool:
    """Return whether a status that was recorded is that of a run which has ended, or was about to end."""
    return recorded is not None and (recorded.get("state") in ENDED or bool(recorded.get("cause")))


@dataclass(frozen=True)
class FormationStatus:
    """The formation of an elastic run: the hosts that the run trains on."""

    number: int = field(default=0, metadata=means("Number of formations before this one."))
    workers: int = field(default=0, metadata=means("Number of workers that train now, with the chief."))
    of_workers: int = field(default=0, metadata=means("Number of workers at the start of the run."))
    ps: int = field(default=0, metadata=means("Number of ps that hold variables now."))
    of_ps: int = field(default=0, metadata=means("Number of ps at the start of the run."))
    without: List[str] = field(default_factory=list, metadata=means("Hosts that are lost, or that wait to join again."))
    forming: bool = field(
        default=False,
        metadata=means("True between two formations: the processes of the old one are ending."),
    )
    drained: List[str] = field(default_factory=list, metadata=means("Tasks that `launch drain` left out."))
    added: List[str] = field(default_factory=list, metadata=means("Spares that `launch drain --back` lets train."))
    changing: bool = field(
        default=False, metadata=means("True while processes for the next formation load, and the chief saves for it.")
    )
    problem: Optional[str] = field(
        default=None, metadata=means("Reason for which the newest change of `launch drain` was given up; else null.")
    )

    @property
    def tasks(self) -> str:
        """Return the numbers of its tasks in words: ``3 of 4 workers, 2 of 2 ps``."""
        return f"{self.workers} of {self.of_workers} workers, {self.ps} of {self.of_ps} ps"


@dataclass(frozen=True)
class EffectiveTime:
    """The time in which steps were trained that count, and where the rest of the time went."""

    share: Optional[float] = field(
        default=None, metadata=means("Effective training time as a share of all time, 0 to 1; null at the beginning.")
    )
    seconds: float = field(default=0.0, metadata=means("Seconds in which steps were trained that count."))
    of_seconds: float = field(default=0.0, metadata=means("Seconds since the run began: the sum of all parts."))
    start_s: float = field(default=0.0, metadata=means("Seconds until the first step."))
    standing_s: float = field(
        default=0.0,
        metadata=means("Seconds without a new step: restarts, stalls, other pauses, and the time after the last step."),
    )
    rolled_back_s: float = field(
        default=0.0, metadata=means("Seconds of steps that were lost, because training went back to a checkpoint.")
    )
    saving_s: float = field(
        default=0.0, metadata=means("Seconds in which the chief saved or measured, and no worker trained.")
    )


@dataclass(frozen=True)
class RunStatus:
    """The object of ``status --json``."""

    run: str = field(default="", metadata=means("Full name of the run: its name and the time of its start."))
    name: str = field(default="", metadata=means("Name of the run, without the time."))
    state: str = field(
        default="starting", metadata=means("State of the run: starting, running, succeeded, failed or stopped.")
    )
    global_step: Optional[int] = field(
        default=None, metadata=means("Newest global step that a worker reported; null before the first.")
    )
    steps: Optional[int] = field(
        default=None, metadata=means("Global step at which the run stops; null for a command.")
    )
    formation: Optional[FormationStatus] = field(
        default=None,
        metadata=means("Hosts that an elastic run trains on now; null without the key elastic."),
    )
    steps_per_second: float = field(
        default=0.0, metadata=means("Recent global steps per second, as the chief measures them.")
    )
    examples_per_second: float = field(
        default=0.0, metadata=means("Recent examples per second, summed over all workers.")
    )
    loss: Optional[float] = field(
        default=None, metadata=means("Loss of the chief's newest step; null before the first.")
    )
    checkpoint_step: Optional[int] = field(
        default=None, metadata=means("Global step of the newest checkpoint; null before the first.")
    )
    evaluation: Optional[Dict[str, Optional[float]]] = field(
        default=None,
        metadata=means(
            "Newest report of the evaluator: the step and each metric, null for one that is undefined. null before the"
            " first, and without an evaluator."
        ),
    )
    cause: Optional[str] = field(default=None, metadata=means("Cause of the failure or stop in one line; else null."))
    training_metrics: Dict[str, Optional[float]] = field(
        default_factory=dict,
        metadata=means(
            "Metrics of the newest examples that trained, null for one that is undefined; empty if the model has none."
        ),
    )
    metrics: Dict[str, Optional[float]] = field(
        default_factory=dict,
        metadata=means(
            "Metrics on the held-out data, at the end of the run, null for one that is undefined; empty before."
        ),
    )
    best: Optional[Dict[str, float]] = field(
        default=None,
        metadata=means("Best checkpoint so far: the step and the metric of train.best; null before the first."),
    )
    best_checkpoint: Optional[str] = field(
        default=None, metadata=means("Path of the best checkpoint, on the chief's host; null before the end.")
    )
    ended_early: Optional[str] = field(
        default=None, metadata=means("Reason for an end before the last step, by train.best; null for none.")
    )
    warnings: List[str] = field(
        default_factory=list,
        metadata=means("Mistakes of the job's author that end no run, a sentence each; docs/jobs.md lists them."),
    )
    checkpoint: Optional[str] = field(
        default=None, metadata=means("Path of the final checkpoint, on the chief's host; null before the end.")
    )
    incidents: List[IncidentStatus] = field(
        default_factory=list, metadata=means("Incidents, oldest first. A long list keeps the first and the newest.")
    )
    silent: List[str] = field(default_factory=list, metadata=means("Hosts whose agents send nothing to the lead now."))
    cause_incident: Optional[int] = field(
        default=None, metadata=means("Number of the incident that made the run fail; null for none.")
    )
    lost_steps: int = field(
        default=0, metadata=means("Number of steps that training went back; `launch restart` of a ps counts, too.")
    )
    lost_seconds: float = field(default=0.0, metadata=means("Seconds without progress, summed over all incidents."))
    effective: Optional[EffectiveTime] = field(
        default=None, metadata=means("Effective training time; null for a command, whose steps are not known.")
    )
    waiting_share: Optional[float] = field(
        default=None,
        metadata=means(
            "Share of a step, 0 to 1, that the workers wait for the slowest one; null where no worker waits."
        ),
    )
    tasks: List[TaskStatus] = field(default_factory=list, metadata=means("Every task of the run."))
    replicas: Dict[str, Optional[int]] = field(
        default_factory=dict,
        metadata=means("For each host with copies of checkpoints: the step of its newest copy, null before the first."),
    )
    started: Optional[str] = field(
        default=None,
        metadata=means(
            "Start of the run by the clock of the chief's host, in ISO 8601, UTC: 2026-11-20T15:59:02+00:00."
        ),
    )
    ended: Optional[str] = field(
        default=None, metadata=means("End of the run, in the same format; null before the end.")
    )
    updated: Optional[str] = field(
        default=None,
        metadata=means("Time of this status, in the same format. While the run lives, it is the time of the request."),
    )
    departed: Optional[str] = field(
        default=None,
        metadata=means("Host that was to leave, and without which the run had to save and stop; else null."),
    )
    hook_problem: Optional[str] = field(
        default=None,
        metadata=means(
            "Newest problem of a receiver of events, by the key on, in one line; null where each takes them."
        ),
    )
