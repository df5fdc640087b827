"""The states of a run and of a task, as ``status --json`` has them.

States of a task:

    starting    its process runs, but it has not reported any progress yet
    running     it trains, or serves
    restarting  it failed and waits for its next attempt
    succeeded   it reported so itself (or, for foreign programs, left with exit code 0)
    failed      it ended by itself otherwise, and is not started again
    stopped     the run ended it, or it is a spare that waits
    lost        its host's agent is out of reach, or was and has not been taken back yet
"""

from typing import Any, Mapping, Optional

OF_RUN = ("starting", "running", "succeeded", "failed", "stopped")
ENDED = ("succeeded", "failed", "stopped")  # of a run

OF_TASK = ("starting", "running", "restarting", "succeeded", "failed", "stopped", "lost")
ALIVE = ("starting", "running", "restarting")  # of a task


def is_over(recorded: Optional[Mapping[str, Any]]) -> bool:
    """Return whether a status that was recorded is that of a run which has ended, or was about to end."""
    return recorded is not None and (recorded.get("state") in ENDED or bool(recorded.get("cause")))
