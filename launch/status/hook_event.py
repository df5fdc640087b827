"""An event of a run as sent to a receiver: one JSON object."""

from dataclasses import dataclass, field
from typing import Dict, List, Optional

STARTED, SAVED, REFORMED, STRAGGLER, QUIET = "started", "saved", "reformed", "straggler", "quiet"
EVENTS = {
    STARTED: "Every task is up for the first time.",
    SAVED: "A checkpoint is complete.",
    REFORMED: "An elastic run trains again, with other tasks.",
    STRAGGLER: "A worker has been slower than the others for 30 seconds.",
    QUIET: "Tasks have done nothing for quiet_s.",
    "succeeded": "The run has succeeded.",
    "failed": "The run has failed.",
    "stopped": "The run was stopped: by a signal, by launch down, or by a launcher that is gone.",
}


@dataclass(frozen=True)
class HookEvent:
    """The JSON object that a command reads on stdin, or that is posted to a URL.

    Attributes:
      id: Name of this one event. An event that arrives twice has the same id; no two events share one.
      event: Kind of the event: started, saved, reformed, straggler, quiet, succeeded, failed or stopped.
      text: Event in one sentence, for a person.
      run: Full name of the run.
      name: Name of the run, without the time.
      state: State of the run, as in launch status.
      cause: Cause of the failure, of the stop or of the change, in one line; else null.
      task: Name of the task that failed first, of the slow task, or of the task that stood still first; else null.
      host: Host of that task, or the host that failed; else null.
      log: Path of that task's log on its host; else null.
      without: Hosts that an elastic run trains without; else empty.
      step: Newest global step; null before the first.
      steps: Global step at which the run stops; null for a command.
      checkpoint_step: Global step of the newest checkpoint; null before the first.
      metrics: Metrics on the held-out data, at the end of a run; else empty.
      time: Time of the event by the clock of the chief's host, in ISO 8601, UTC.
      started: Start of the run, in the same format.
      ended: End of the run, in the same format; null before the end.
    """

    id: str = ""
    event: str = ""
    text: str = ""
    run: str = ""
    name: str = ""
    state: str = ""
    cause: Optional[str] = None
    task: Optional[str] = None
    host: Optional[str] = None
    log: Optional[str] = None
    without: List[str] = field(default_factory=list)
    step: Optional[int] = None
    steps: Optional[int] = None
    checkpoint_step: Optional[int] = None
    metrics: Dict[str, Optional[float]] = field(default_factory=dict)
    time: str = ""
    started: Optional[str] = None
    ended: Optional[str] = None
