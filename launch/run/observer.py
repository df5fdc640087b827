"""Observe a run that somebody else has started, without any effect on the run."""

from typing import Callable

from launch.errors import CannotStart, HostProblem, UsageError
from launch.fleet import Fleet
from launch.history.newest import locate
from launch.hosts.conversation import Conversation
from launch.run.follower import Follower
from launch.status.run import RunStatus
from launch.view.console import fold
from launch.view.plain_view import View


class Observer(Follower):
    """Follow a run until it has ended or a signal comes; the run does not notice the observer."""

    def __init__(self, fleet: Fleet, status: RunStatus, view: View):
        super().__init__(fleet, fleet.reference(fleet.lead, run=status.run), status, view)

    def relay(self, lead: Conversation) -> None:
        """Send nothing, because a signal is for this process alone."""

    def is_unwanted(self) -> bool:
        """Return whether a signal has come, which ends the observation."""
        return bool(self._fleet.interrupts.received)

    def give_up(self, problem: HostProblem) -> None:
        """Raise CannotStart, with the advice that the run may go on out of reach."""
        out_of_reach = HostProblem(self._lead, problem.kind, problem.what, advice=problem.advice)
        raise CannotStart([out_of_reach.with_advice("the run may continue there")])


def newest_status(fleet: Fleet, asked: str, warn: Callable[[str], None] = lambda line: None) -> RunStatus:
    """Return the status of the newest run of ``asked``, or of the run that ``--run`` names.

    The status comes from the run's agent or, when that agent is gone, from its files.

    Args:
      warn: takes a line for each host that could not be asked and may know a newer run.

    Raises:
      CannotStart: the lead's host is out of reach; the text has the command that goes on without that host.
      HostProblem: the lead's answer is no run's status.
      UsageError: there has been no run, or the file does not name its lead any more.
    """
    try:
        found, missed, run = locate(fleet)
    except CannotStart as error:
        if len(fleet.hosts) == 1:
            raise
        advice = (
            f"if {fleet.lead} is lost, continue without it with `launch up --resume {asked} --exclude {fleet.lead}`"
        )
        raise CannotStart(error.problems, advice) from error
    if found is None and run is not None:
        raise UsageError(f"{run}: expected its lead's record on {fleet.lead}, found none; see `launch runs {asked}`")
    if found is None:
        raise UsageError(
            f"{asked}: no run of this name has been on {fold(fleet.hosts)}; start one with `launch up {asked}`"
        )
    for problem in missed:
        warn(f"{problem}; a newer run may be there")
    return found
