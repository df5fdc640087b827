"""An event of a run as a receiver gets it: one JSON object."""

from dataclasses import dataclass, field
from typing import Dict, List, Optional

from launch.status.meanings import means

STARTED, REFORMED, STRAGGLER = "started", "reformed", "straggler"
EVENTS = {
    STARTED: "Every task is up for the first time.",
    REFORMED: "An elastic run trains again, with other tasks.",
    STRAGGLER: "A worker has been slower than the others for 30 seconds.",
    "succeeded": "The run has succeeded.",
    "failed": "The run has failed.",
    "stopped": "The run was stopped: by a signal, by launch down, or by a launcher that is gone.",
}


@dataclass(frozen=True)
class HookEvent:
    """The JSON object that a command reads, and that a URL gets."""

    id: str = field(
        default="",
        metadata=means("Name of this one event. An event that arrives twice has the same id; no two events share one."),
    )
    event: str = field(
        default="",
        metadata=means("Kind of the event: started, reformed, straggler, succeeded, failed or stopped."),
    )
    text: str = field(default="", metadata=means("Event in one sentence, for a person."))
    run: str = field(default="", metadata=means("Full name of the run."))
    name: str = field(default="", metadata=means("Name of the run, without the time."))
    state: str = field(default="", metadata=means("State of the run, as in launch status."))
    cause: Optional[str] = field(
        default=None, metadata=means("Cause of the failure, of the stop or of the change, in one line; else null.")
    )
    task: Optional[str] = field(
        default=None, metadata=means("Name of the task that failed first, or that is slow; else null.")
    )
    host: Optional[str] = field(default=None, metadata=means("Host of that task, or that failed; else null."))
    log: Optional[str] = field(default=None, metadata=means("Path of that task's log on its host; else null."))
    without: List[str] = field(
        default_factory=list, metadata=means("Hosts that an elastic run trains without; else empty.")
    )
    step: Optional[int] = field(default=None, metadata=means("Newest global step; null before the first."))
    steps: Optional[int] = field(
        default=None, metadata=means("Global step at which the run stops; null for a command.")
    )
    checkpoint_step: Optional[int] = field(
        default=None, metadata=means("Global step of the newest checkpoint; null before the first.")
    )
    metrics: Dict[str, Optional[float]] = field(
        default_factory=dict, metadata=means("Metrics on the held-out data, at the end of a run; else empty.")
    )
    time: str = field(
        default="", metadata=means("Time of the event by the clock of the chief's host, in ISO 8601, UTC.")
    )
    started: Optional[str] = field(default=None, metadata=means("Start of the run, in the same format."))
    ended: Optional[str] = field(
        default=None, metadata=means("End of the run, in the same format; null before the end.")
    )
