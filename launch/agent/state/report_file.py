"""``report.json``: the incidents of a run, in the lead's own folder.

The lead keeps the file current, and completes it at the end of the run.

run, name, state, cause      as in ``status --json``
began, seconds               when the run began, in seconds since 1970 on the lead's clock, and how long it took so far
global_step, steps, checkpoint_step, lost_steps, lost_seconds, effective, cause_incident, incidents
                             as in ``status --json``
incident_count               how many there were; of many, ``incidents`` has the first and the newest
words                        the same as lines that a person reads
"""

from typing import Any, Callable, Dict

from cluster.protocol.typed_json import to_values
from launch.agent.state.run_folder import RunFolder
from launch.status import incident_status
from launch.status.run import RunStatus

FILE = "report.json"
SAME = (
    "run", "name", "state", "cause", "global_step", "steps", "checkpoint_step", "lost_steps", "lost_seconds",
    "effective", "cause_incident", "incidents",
)  # fmt: skip


def report(status: RunStatus, began: float, seconds: float) -> Dict[str, Any]:
    """Return the report of a run with this status."""
    incidents, values = status.incidents, to_values(status)
    return {
        **{key: values[key] for key in SAME},
        "began": began,
        "seconds": round(seconds, 3),
        "incident_count": incidents[-1].number if incidents else 0,
        "words": incident_status.lines(incidents),
    }


class ReportFile:
    """Write the report when there is news in it.

    ``began`` is the time at which the run began, in seconds since 1970, as ``clock`` has it.
    """

    def __init__(self, folder: RunFolder, clock: Callable[[], float]):
        self._folder, self._clock = folder, clock
        earlier = folder.read_whole(FILE)  # of the agent before, where this one was started again
        self.began: float = earlier["began"] if earlier else clock()
        self._written: Any = None

    def note(self, status: RunStatus, final: bool) -> None:
        """Write the report if an incident or the run's state changed, and at the end."""
        news = (status.state, status.cause, status.incidents)
        if final or news != self._written:
            seconds = self._clock() - self.began
            self._written = news if self._folder.note(FILE, report(status, self.began, seconds)) else None
