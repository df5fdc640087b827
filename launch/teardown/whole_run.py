"""Refuse to end a part of a run: a selection of hosts that leaves out some of the run's hosts."""

from launch.errors import UsageError
from launch.fleet import Fleet
from launch.history.newest import locate
from launch.view.console import fold


def refuse_part(fleet: Fleet) -> None:
    """Refuse a ``fleet`` that lacks hosts of the newest run, which the run's lead knows.

    Raises:
      UsageError: there is no run, its lead is elsewhere, or the run has other hosts too.
      CannotStart: the lead is out of reach.
    """
    status = locate(fleet).status
    advice = "give --include and --exclude as `launch up` was given them, or leave them out"
    if status is None:
        raise UsageError(f"{fold(fleet.hosts)}: expected a run named {fleet.spec.name}, found none; {advice}")
    others = {task.host for task in status.tasks} - set(fleet.hosts)
    if others:
        raise UsageError(f"{status.run}: expected all of its hosts, found that {fold(others)} is left out; {advice}")
