"""Remove past runs beside a run that has just started, in a thread of its own.

The disk may take minutes for it, and training must not wait. Where the agent ends before, the next one goes on.
"""

import threading
import time

from launch.agent.retention import pruning
from launch.agent.retention.past_runs import Clocks
from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest


def begin(request: RunRequest, folder: RunFolder) -> None:
    """Begin to apply the rules on this host; an agent that takes another's place has no need to."""
    if request.retention is not None and not request.again:
        threading.Thread(target=_prune, args=(request, folder), daemon=True, name="prune").start()


def _prune(request: RunRequest, folder: RunFolder) -> None:
    rules = {} if request.retention is None else {request.name: request.retention}
    now = time.time()
    clocks = Clocks(now, now if request.generation is None else float(request.generation))
    try:
        found = pruning.prune(pruning.Place(folder.workdir, [request.host], rules), clocks, whole=False)
    except Exception as error:  # no past run is worth this one
        say(f"past runs were not looked through: {type(error).__name__}: {error}")
        return
    failed = {each.name: each.why for each in found.failed}
    for name, why in failed.items():
        say(f"{name} was not removed: {why}")
    for each in found.going:
        if each.name not in failed:
            say(f"removed the {each.what} {each.name}, {each.bytes} bytes: {each.why}")
