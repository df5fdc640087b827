"""Start the agent of a detached run again after its host has booted: what the unit of ``boot_unit`` runs.

The network, or a folder that is mounted late, may not be there yet. So systemd tries a start that fails again.
"""

import os
from pathlib import Path
from typing import Any, Callable, Dict

from cluster.protocol.typed_json import from_values
from launch.agent.service import recovery
from launch.agent.state import boot_unit
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest

DONE, AGAIN = 0, 1  # exit codes for systemd

Begin = Callable[[RunRequest], Dict[str, Any]]


def start_again(own: Path, begin: Begin) -> int:
    """Start the agent whose folder of the run this is; return an exit code for systemd."""
    os.umask(0o077)
    folder = RunFolder(own.parents[3], own.parents[1].name, own.name)
    kept = boot_unit.read(folder)
    if kept is None:  # somebody has ended the run, a successor of the name has, or the folder is not mounted yet
        return DONE if own.is_dir() else AGAIN
    request = from_values(RunRequest, kept["request"])
    if not recovery.goes_on(folder, request):
        boot_unit.remove(folder)
        return DONE
    os.environ.clear()
    os.environ.update(kept["environment"])
    answer = begin(request)
    if "error" in answer:
        print(f"the agent cannot start after a boot: {answer['error']}", flush=True)
    return AGAIN if "error" in answer else DONE
