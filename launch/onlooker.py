"""Looking at a run that somebody else has started, without its noticing."""

from typing import Any, Dict, Mapping

from launch.channel import Channel
from launch.display import View
from launch.errors import CannotStart, HostProblem, UsageError
from launch.fleet import Fleet
from launch.follow import Follower


class Onlooker(Follower):
    """Follows a run until it has ended or a signal comes; the run goes on as if nobody looked."""

    def __init__(self, fleet: Fleet, status: Mapping[str, Any], view: View):
        super().__init__(fleet, fleet.request(fleet.lead, run=status["run"]), status, view)

    def greet(self, channel: Channel, first: bool) -> None:
        """Nothing: the run is not ours."""

    def heed(self, channel: Channel) -> None:
        """Nothing: a signal is for us alone."""

    def unwanted(self) -> bool:
        """A signal ends the looking."""
        return bool(self._fleet.interrupts.received)

    def give_up(self, problem: str) -> None:
        """Raises CannotStart: what is out of reach from here may well go on."""
        raise CannotStart([HostProblem(self._lead, f"{problem}; the run may go on there")])


def newest_status(fleet: Fleet, asked: str) -> Dict[str, Any]:
    """``status --json`` of the newest run of what was asked for, from its agent or, when that is gone, its files.

    Raises:
      CannotStart: the lead's host is out of reach; the text says how to go on without it.
      UsageError: there has been no run.
    """
    try:
        found: Dict[str, Any] = fleet.ask_lead("status")["status"]
    except CannotStart as error:
        if len(fleet.hosts) == 1:
            raise
        advice = f"if {fleet.lead} is lost, go on without it with `launch up --resume {asked} --exclude {fleet.lead}`"
        raise CannotStart(error.problems, advice) from error
    if found is None:
        raise UsageError(f"{asked}: no run of this name has been on {fleet.lead}; start one with `launch up {asked}`")
    return found
