"""The status of a run as in ``status --json``; the states of a run and of a task; a host's record of a run.

States of a task:

    starting    the task's process runs, but has not reported any progress yet
    running     the task trains, or serves
    restarting  the task failed and waits for its next attempt
    succeeded   the task reported success (or, for a command, ended with exit code 0)
    failed      the task ended by itself without success, and is not started again
    stopped     the run ended the task, or the task is a spare that waits
    lost        the host's agent is out of reach, or has returned and is not yet part of the run again
"""

from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Dict, List, Mapping, Optional

from cluster.task import TRAINERS
from launch.status.incident_status import IncidentStatus
from launch.status.run_history import RunHistory
from launch.status.task import Number, TaskStatus

RUN_STATES = ("starting", "running", "succeeded", "failed", "stopped")
ENDED = ("succeeded", "failed", "stopped")  # of a run

TASK_STATES = ("starting", "running", "restarting", "succeeded", "failed", "stopped", "lost")
ALIVE = ("starting", "running", "restarting")  # of a task


def utc(moment: float) -> str:
    """Return seconds since 1970 in ISO 8601 and UTC, in any time zone: ``2026-11-20T15:59:02+00:00``."""
    return datetime.fromtimestamp(moment, timezone.utc).isoformat(timespec="seconds")


def is_over(recorded: Optional[Mapping[str, Any]]) -> bool:
    """Return whether ``recorded``, a status, is from a run that has ended, or was about to end."""
    return recorded is not None and (recorded.get("state") in ENDED or bool(recorded.get("cause")))


@dataclass(frozen=True)
class FormationStatus:
    """The formation of an elastic run: the hosts that the run trains on.

    Attributes:
      number: Number of formations before this one.
      workers: Number of workers that train now, with the chief.
      of_workers: Number of workers at the start of the run.
      ps: Number of ps that hold variables now.
      of_ps: Number of ps at the start of the run.
      without: Hosts that are lost, or that wait to join again.
      forming: True between two formations, while the processes of the old formation end.
      drained: Tasks that `launch drain` left out.
      added: Spares that `launch drain --back` lets train.
      changing: True while processes for the next formation load, and the chief saves for it.
      problem: Reason why the newest change of `launch drain` was given up; else null.
    """

    number: int = 0
    workers: int = 0
    of_workers: int = 0
    ps: int = 0
    of_ps: int = 0
    without: List[str] = field(default_factory=list)
    forming: bool = False
    drained: List[str] = field(default_factory=list)
    added: List[str] = field(default_factory=list)
    changing: bool = False
    problem: Optional[str] = None

    @property
    def tasks(self) -> str:
        """Return the numbers of tasks in words: ``3 of 4 workers, 2 of 2 ps``."""
        return f"{self.workers} of {self.of_workers} workers, {self.ps} of {self.of_ps} ps"


@dataclass(frozen=True)
class EffectiveTime:
    """The effective training time, which excludes steps that were lost later, and the parts of the other time.

    Attributes:
      share: Effective training time as a share of all time, 0 to 1; null at the beginning.
      seconds: Seconds in which the run trained steps that were not lost later.
      of_seconds: Seconds since the run began: the sum of all parts.
      start_s: Seconds until the first step.
      standing_s: Seconds without a new step: restarts, stalls, other pauses, and the time after the last step.
      rolled_back_s: Seconds of steps that were lost, because training went back to a checkpoint.
      saving_s: Seconds in which the chief saved or measured, and no worker trained.
    """

    share: Optional[float] = None
    seconds: float = 0.0
    of_seconds: float = 0.0
    start_s: float = 0.0
    standing_s: float = 0.0
    rolled_back_s: float = 0.0
    saving_s: float = 0.0

    @property
    def lost(self) -> Dict[str, float]:
        """Return the seconds of each part of the time that was not effective training."""
        parts = {"start": self.start_s, "standing": self.standing_s, "rolled_back": self.rolled_back_s}
        return {**parts, "saving": self.saving_s}


@dataclass(frozen=True)
class Remaining:
    """The workers of a program that have not ended after another of its workers has exited with code 0.

    Attributes:
      at_s: Seconds from the start of the run to the first exit of a worker with code 0.
      left: Workers that have exited with code 0.
      tasks: Workers that have not ended.
    """

    at_s: float = 0.0
    left: List[str] = field(default_factory=list)
    tasks: List[str] = field(default_factory=list)


@dataclass(frozen=True)
class RunStatus:
    """The object of ``status --json``.

    Attributes:
      run: Full name of the run: its name and the time of its start.
      name: Name of the run, without the time.
      state: State of the run: starting, running, succeeded, failed or stopped.
      global_step: Newest global step that a worker reported; null before the first.
      steps: Global step at which the run stops; null for a command.
      formation: Hosts that an elastic run trains on now; null without the key elastic.
      steps_per_second: Recent global steps per second, as the chief measures them.
      examples_per_second: Recent examples per second, summed over all workers.
      loss: Loss of the chief's newest step; null before the first.
      checkpoint_step: Global step of the newest checkpoint; null before the first.
      evaluation: Newest report of the evaluator: the step and each metric, null for an undefined metric. null before
        the first report, and without an evaluator.
      cause: Cause of the failure or stop in one line; else null.
      training_metrics: Metrics of the newest training examples, null for an undefined metric; empty if the model has no
        metrics.
      metrics: Metrics on the held-out data, at the end of the run, null for an undefined metric; empty before the end.
      best: Best checkpoint so far: the step and the metric of train.best; null before the first.
      best_checkpoint: Path of the best checkpoint, on the chief's host; null before the end.
      ended_early: Reason for an end before the last step, by train.best; else null.
      warnings: Mistakes that do not end the run, one sentence each; docs/jobs.md lists those of a job, and
        docs/programs.md those of a program.
      checkpoint: Path of the final checkpoint, on the chief's host; null before the end.
      incidents[]: Incidents, oldest first. A long list keeps the first and the newest.
      silent: Hosts whose agents send nothing now; the chief's host if its agent does not answer.
      cause_incident: Number of the incident that made the run fail; else null.
      lost_steps: Number of steps that training went back, including restarts of a ps by `launch restart`.
      lost_seconds: Seconds without a newer step, beyond the usual time of a step, summed over all pauses, also
        those without an incident.
      effective: Effective training time; null for a program whose steps are not known.
      waiting_share: Share of a step, 0 to 1, in which workers wait for the slowest worker; null where no worker waits.
      remaining: Workers that have not ended ten seconds after another worker has exited with code 0; null without such
        an exit, for a job, and once the run has its result.
      tasks[]: Every task of the run.
      replicas: For each host with copies of checkpoints: the step of its newest copy, null before the first.
      started: Start of the run by the clock of the chief's host, in ISO 8601, UTC: 2026-11-20T15:59:02+00:00.
      ended: End of the run, in the same format; null before the end.
      updated: Time of this status, in the same format. While the run lives, it is the time of the request.
      departed: Host that was about to leave, so that the run had to save and stop; else null.
      hook_problem: Newest problem of an event receiver of the key on, in one line; null without a problem.
      history: Learning curve of the run, and of the runs that it continues.
    """

    run: str = ""
    name: str = ""
    state: str = "starting"
    global_step: Optional[int] = None
    steps: Optional[int] = None
    formation: Optional[FormationStatus] = None
    steps_per_second: float = 0.0
    examples_per_second: float = 0.0
    loss: Optional[float] = None
    checkpoint_step: Optional[int] = None
    evaluation: Optional[Dict[str, Optional[float]]] = None
    cause: Optional[str] = None
    training_metrics: Dict[str, Optional[float]] = field(default_factory=dict)
    metrics: Dict[str, Optional[float]] = field(default_factory=dict)
    best: Optional[Dict[str, float]] = None
    best_checkpoint: Optional[str] = None
    ended_early: Optional[str] = None
    warnings: List[str] = field(default_factory=list)
    checkpoint: Optional[str] = None
    incidents: List[IncidentStatus] = field(default_factory=list)
    silent: List[str] = field(default_factory=list)
    cause_incident: Optional[int] = None
    lost_steps: int = 0
    lost_seconds: float = 0.0
    effective: Optional[EffectiveTime] = None
    waiting_share: Optional[float] = None
    remaining: Optional[Remaining] = None
    tasks: List[TaskStatus] = field(default_factory=list)
    replicas: Dict[str, Optional[int]] = field(default_factory=dict)
    started: Optional[str] = None
    ended: Optional[str] = None
    updated: Optional[str] = None
    departed: Optional[str] = None
    hook_problem: Optional[str] = None
    history: RunHistory = field(default_factory=RunHistory)


RUN_NUMBERS = (
    Number("global_step", "launch_step", "Global step of the run."),
    Number("steps", "launch_last_step", "Global step at which the run stops."),
    Number("steps_per_second", "launch_steps_per_second", "Recent global steps per second, over ten seconds."),
    Number("examples_per_second", "launch_examples_per_second", "Recent examples per second, summed over all workers."),
    Number("loss", "launch_loss", "Loss of the chief's newest batch."),
    Number("checkpoint_step", "launch_checkpoint_step", "Global step of the newest checkpoint."),
    Number(
        "waiting_share", "launch_waiting_ratio", "Share of a step, 0 to 1, that the workers wait for the slowest one."
    ),
)


def quiet_tasks(status: RunStatus) -> List[TaskStatus]:
    """Return the tasks that do nothing: first those that train, then all others, both by the time of standstill."""
    found = [
        (task.role not in TRAINERS, task.quiet.at_s, place) for place, task in enumerate(status.tasks) if task.quiet
    ]
    return [status.tasks[place] for *_, place in sorted(found)]


@dataclass(frozen=True)
class RunRecord:
    """An item of ``runs`` in ``runs --json``. The lead reports ``state`` and all fields after it, by its own clock.

    Attributes:
      run: Full name of the run: its name and the time of its start.
      name: Name of the run, without the time.
      file: Hosts file of the run, with the options that verbs need in addition; null where the file is not known.
      user: User and machine that started the run: anna@desk7. For a run of an older version, the user on the host.
      lead: Host whose agent leads the run; null where the lead is not known.
      hosts[]: Host that takes part, the lead first; empty where the lead's host did not answer.
      state: State of the run: starting, running, succeeded, failed or stopped; null where the lead's host did not
        answer, or has no record.
      cause: First cause of the failure or stop in one line; else null.
      started: Start of the run by the clock of the lead's host, in ISO 8601, UTC: 2026-11-20T15:59:02+00:00; null if
        state is null.
      ended: End of the run, by the same clock; null before the end, and if state is null.
      updated: Time of the lead's newest record, by the same clock; null if state is null.
      global_step: Newest global step that a worker reported; null before the first.
      steps: Global step at which the run stops; null for a command.
      incidents: Number of incidents.
      effective_share: Effective training time as a share of all time, 0 to 1; null at the beginning, for a program
        without progress, and if state is null.
      loss: Loss of the chief's newest step; null before the first, and if state is null.
      best: Best checkpoint so far: the step and the metric of train.best; null before the first, and if state is null.
      metrics: Metrics on the held-out data, at the end of the run, null for an undefined metric; empty before the end.
      args: Arguments of the job's functions. For a command: the options of the chief, which begin with two dashes.
      train: Keys of train; empty for a command.
      continues: Run whose checkpoint this run began with; null without one, and for train.checkpoint.dir.
      began_at: Step of that checkpoint; null without one.
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
    loss: Optional[float] = None
    best: Optional[Dict[str, float]] = None
    metrics: Dict[str, Optional[float]] = field(default_factory=dict)
    args: Dict[str, Any] = field(default_factory=dict)
    train: Dict[str, Any] = field(default_factory=dict)
    continues: Optional[str] = None
    began_at: Optional[int] = None


@dataclass(frozen=True)
class KnownRun:
    """A run that a host took part in.

    Attributes:
      generation: a number above the generations of all earlier runs of this name.
      lives: whether the run's agent or keeper lives on this host.
    """

    generation: int
    lives: bool
    record: RunRecord


@dataclass(frozen=True)
class RunsAnswer:
    """A host's answer to ``runs``: its runs of every name, newest first."""

    runs: List[KnownRun]
