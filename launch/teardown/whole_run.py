"""Ending is for whole runs: a selection of hosts that leaves some of a run's hosts out is refused."""

from launch.errors import UsageError
from launch.fleet import Fleet
from launch.history.newest import locate
from launch.view.console import fold


def refuse_part(fleet: Fleet) -> None:
    """Whether the hosts of ``fleet`` are all of the newest run's; its lead knows.

    Raises:
      UsageError: there is no run, it is led from elsewhere, or it has other hosts too.
      CannotStart: the lead is out of reach.
    """
    status = locate(fleet).status
    advice = "give --include and --exclude as `launch up` was given them, or leave them out"
    if status is None:
        raise UsageError(f"{fold(fleet.hosts)}: expected a run named {fleet.spec.name}, found none; {advice}")
    others = {task.host for task in status.tasks} - set(fleet.hosts)
    if others:
        raise UsageError(f"{status.run}: expected all of its hosts, found that {fold(others)} is left out; {advice}")
