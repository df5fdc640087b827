"""``report.json``: what went wrong in a run, kept current in the lead's own folder and complete at its end.

run, name, state, cause      as in ``status --json``
began, seconds               when the run began, in seconds since 1970 on the lead's clock, and how long it took so far
global_step, steps, checkpoint_step, lost_steps, lost_seconds, cause_incident, incidents
                             as in ``status --json``
incident_count               how many there were; of many, ``incidents`` has the first and the newest
words                        the same as lines that a person reads
"""

import time
from typing import Any, Callable, Dict, Mapping

from launch.agent import incident_words
from launch.agent.folder import RunFolder

FILE = "report.json"
SAME = (
    "run", "name", "state", "cause", "global_step", "steps", "checkpoint_step", "lost_steps", "lost_seconds",
    "cause_incident", "incidents",
)  # fmt: skip


def report(status: Mapping[str, Any], began: float, seconds: float) -> Dict[str, Any]:
    """What is written of a run that is at this status."""
    incidents = status["incidents"]
    return {
        **{key: status[key] for key in SAME},
        "began": began,
        "seconds": round(seconds, 3),
        "incident_count": incidents[-1]["number"] if incidents else 0,
        "words": incident_words.lines(incidents),
    }


class Report:
    """Writes the report when there is news in it."""

    def __init__(self, folder: RunFolder, clock: Callable[[], float] = time.time):
        self._folder, self._clock = folder, clock
        earlier = folder.read(FILE)  # of the agent before, where this one was started again
        self._began: float = earlier["began"] if earlier else clock()
        self._written: Any = None

    def note(self, status: Mapping[str, Any], final: bool) -> None:
        """Writes if what went wrong has changed, or the run's state; at the end in any case."""
        news = (status["state"], status["cause"], status["incidents"])
        if final or news != self._written:
            seconds = self._clock() - self._began
            self._written = news if self._folder.note(FILE, report(status, self._began, seconds)) else None
