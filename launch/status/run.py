"""The status of a run."""

from dataclasses import dataclass, field
from typing import Dict, List, Optional

from launch.status.incident import IncidentStatus
from launch.status.meanings import means
from launch.status.task import TaskStatus


@dataclass(frozen=True)
class FormationStatus:
    """The formation of an elastic run: the hosts that the run trains on."""

    number: int = field(default=0, metadata=means("how often the run was formed anew"))
    workers: int = field(default=0, metadata=means("how many workers train, the chief among them"))
    of_workers: int = field(default=0, metadata=means("how many the run began with"))
    ps: int = field(default=0, metadata=means("how many ps hold the variables"))
    of_ps: int = field(default=0, metadata=means("how many the run began with"))
    without: List[str] = field(
        default_factory=list, metadata=means("the hosts that are lost, or were and wait to be taken back")
    )
    forming: bool = field(
        default=False,
        metadata=means("whether the processes of one formation are ending, for the next one to begin"),
    )


@dataclass(frozen=True)
class RunStatus:
    """The object of ``status --json``."""

    run: str = field(default="", metadata=means("the run, name and time of its start"))
    name: str = field(default="", metadata=means("its name"))
    state: str = field(default="starting", metadata=means("starting, running, succeeded, failed or stopped"))
    global_step: Optional[int] = field(
        default=None, metadata=means("the newest step that a worker has reported; null before the first")
    )
    steps: Optional[int] = field(default=None, metadata=means("the step to stop at; null for a command"))
    formation: Optional[FormationStatus] = field(
        default=None,
        metadata=means("which of its hosts an elastic run trains on now; null without the key elastic"),
    )
    steps_per_second: float = field(default=0.0, metadata=means("the chief's rate, over the last seconds"))
    examples_per_second: float = field(default=0.0, metadata=means("of all workers"))
    loss: Optional[float] = field(default=None, metadata=means("of the chief's newest step; null before the first"))
    checkpoint_step: Optional[int] = field(
        default=None, metadata=means("the step of the newest checkpoint; null before the first")
    )
    evaluation: Optional[Dict[str, float]] = field(
        default=None,
        metadata=means("what the evaluator reported last: the step, and each metric; null before, and without one"),
    )
    cause: Optional[str] = field(default=None, metadata=means("why it failed or was stopped, in one line; else null"))
    metrics: Dict[str, float] = field(
        default_factory=dict, metadata=means("of the held-out data, at the end; empty before")
    )
    checkpoint: Optional[str] = field(
        default=None, metadata=means("the final checkpoint, a path on the chief's host; null before the end")
    )
    incidents: List[IncidentStatus] = field(
        default_factory=list, metadata=means("what went wrong, oldest first; of many, the first and the newest")
    )
    silent: List[str] = field(
        default_factory=list, metadata=means("the hosts from whose agents the lead receives nothing right now")
    )
    cause_incident: Optional[int] = field(
        default=None, metadata=means("the number of the incident that the run has failed for; null for none")
    )
    lost_steps: int = field(default=0, metadata=means("of all incidents: how far the global step went back, in all"))
    lost_seconds: float = field(default=0.0, metadata=means("of all incidents: how long training stood, in all"))
    waiting_share: Optional[float] = field(
        default=None,
        metadata=means("the part of a step, from 0 to 1, that workers wait for the slowest; null where none waits"),
    )
    tasks: List[TaskStatus] = field(default_factory=list, metadata=means("every task of the run"))
    replicas: Dict[str, Optional[int]] = field(
        default_factory=dict,
        metadata=means("by host that keeps copies of checkpoints: the step of its newest; null before its first"),
    )
    started: Optional[str] = field(
        default=None,
        metadata=means(
            "when the run began, in ISO 8601, in UTC, by the clock of the chief's host: 2026-11-20T15:59:02+00:00"
        ),
    )
    ended: Optional[str] = field(
        default=None, metadata=means("when it succeeded, failed or was stopped, likewise; null before")
    )
    updated: Optional[str] = field(
        default=None,
        metadata=means("when its lead last reported this, likewise; of a run that lives, the moment of the question"),
    )
