"""Make way on a host for the successor of a run's agent that died.

The keeper of an agent that died ends what the agent left, and that takes a moment. So there are never
two agents of a run on one host, nor tasks of both.
"""

from typing import Optional

from launch.agent.state import leftovers, process_records
from launch.agent.state.run_folder import RunFolder

SWEPT_S = 15.0  # for the keeper to have ended what the agent left; it waits 10 s for what hangs


def make_way(folder: RunFolder) -> Optional[int]:
    """Return the pid of the run's agent on this host, if the agent lives, or its keeper starts the next one.

    Otherwise nothing of the agent is left when this function returns.
    """
    leftovers.wait(lambda: _serves(folder) or not process_records.agent_of(folder), SWEPT_S)
    serving = leftovers.agent_pid(folder)
    if serving is None and folder.own.is_dir():
        leftovers.end(folder)  # where no keeper was left to do it
    return serving


def _serves(folder: RunFolder) -> bool:
    return leftovers.agent_pid(folder) is not None
