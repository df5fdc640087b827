"""The control groups of a run's tasks on this host: made by its agent, removed by it, its keeper or ``down``.

A group is known by its name, which has the run and the host. groups.json has the folder that the groups are in.
"""

from pathlib import Path
from typing import List

from launch.agent.limits import control_groups
from launch.agent.state.run_folder import RunFolder

RECORD = "groups.json"


def name(folder: RunFolder, which: str = "") -> str:
    """Return the name of a group, or with nothing to distinguish it the beginning of every name."""
    return f"launch.{folder.run}@{folder.host}@{which}"


def write(folder: RunFolder, place: Path) -> None:
    """Record the folder of the groups, before there is one. Raises OSError."""
    folder.write(RECORD, {"folder": str(place)})


def left(folder: RunFolder) -> List[Path]:
    """Return the groups of a run that are there."""
    record = folder.read_whole(RECORD)
    return [] if record is None else control_groups.named(Path(record["folder"]), name(folder))


def remove(folder: RunFolder) -> None:
    """Remove the groups of a run whose processes have ended; a group with a process in it stays."""
    for group in left(folder):
        control_groups.remove(group)
