"""Start the agent of a detached run again after its host has booted: what the unit of ``boot_unit`` runs.

The network, or a folder that is mounted late, may not be there yet, so a start that fails is tried again for a while.
"""

import os
import time
from pathlib import Path
from typing import Any, Callable, Dict

from launch.agent.service import recovery
from launch.agent.state import boot_unit
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from launch.status.values import from_values

TRIES_S, PAUSE_S = 240.0, 3.0

Begin = Callable[[RunRequest], Dict[str, Any]]


def start_again(own: Path, begin: Begin, clock: Callable[[], float] = time.monotonic) -> int:
    """Start the agent whose folder of the run this is; return an exit code for systemd."""
    os.umask(0o077)
    folder = RunFolder(own.parents[3], own.parents[1].name, own.name)
    until, answer = clock() + TRIES_S, {"error": ""}
    while "error" in answer:
        kept = boot_unit.read(folder)
        if kept is None:  # somebody has ended the run, or a successor of the name has
            return 0
        request = from_values(RunRequest, kept["request"])
        if not recovery.goes_on(folder, request):
            boot_unit.remove(folder)
            return 0
        os.environ.clear()
        os.environ.update(kept["environment"])
        answer = begin(request)
        if "error" in answer:
            print(f"the agent cannot start after a boot: {answer['error']}", flush=True)
            if clock() > until:
                return 1
            time.sleep(PAUSE_S)
    return 0
