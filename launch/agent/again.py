"""Making way on a host for another agent of a run, in the place of one that died.

The keeper of an agent that died ends what it left, and that takes a moment: there are never two
agents of a run on one host, nor tasks of both.
"""

from typing import Optional

from launch.agent import records, remains
from launch.agent.folder import RunFolder

SWEPT_S = 15.0  # for the keeper to have ended what the agent left; it waits 10 s for what hangs


def make_way(folder: RunFolder) -> Optional[int]:
    """The pid of the run's agent on this host, if it lives. Else there is nothing left of it when this returns."""
    serving = remains.agent_pid(folder)
    if serving is not None:
        return serving
    remains.wait(lambda: not records.agent_of(folder), SWEPT_S)
    serving = remains.agent_pid(folder)
    if serving is None and folder.own.is_dir():
        remains.end(folder)  # where no keeper was left to do it
    return serving
