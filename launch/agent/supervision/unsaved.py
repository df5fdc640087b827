"""Record the chief's reports of failed checkpoints as incidents of the run.

The chief reports checkpoints that it cannot write, or could not read.
"""

from typing import Any, Mapping, Optional

from launch.agent.supervision.incident import Incident
from launch.agent.supervision.incidents import Incidents


class Unsaved:
    """Follow ``checkpoint_problem`` of the chief's progress.

    Each problem is one incident, however often the chief reports it.
    """

    def __init__(self, incidents: Incidents):
        self._incidents = incidents
        self._problem: Optional[str] = None
        self._incident: Optional[Incident] = None

    def told(self, task: str, progress: Mapping[str, Any], now: float) -> None:
        """Record the chief's progress."""
        problem = progress.get("checkpoint_problem")
        if problem == self._problem:
            return
        if problem is not None:
            self._incident = self._incidents.begin("checkpoint", now, task, cause=problem)
        else:
            self._incidents.record_action(
                f"a checkpoint of step {progress.get('checkpoint_step')} is written", now, self._incident
            )
        self._problem = problem
