"""The newest steps of tasks, asked of all their hosts at once, on one time line."""

import time
from typing import Any, Dict, List, Sequence, Tuple

from launch.agent.wire.flight import HostFlights
from launch.agent.wire.verb_requests import FlightRequest
from launch.errors import HostProblem
from launch.fleet import AnyTask, Fleet
from launch.hosts import rpc
from launch.hosts.channel import Host
from launch.hosts.conversation import noise_if_malformed
from launch.status.run import RunStatus
from launch.status.values import from_values, to_values
from launch.timeline.clocks import Exchange
from launch.timeline.drawing import drawn
from launch.timeline.flights import Answer, has_common_steps, time_line

NEWEST = 1000  # spans of a task
PATIENCE_S = 30.0


def newest_steps(fleet: Fleet, tasks: Sequence[AnyTask], status: RunStatus) -> Tuple[Dict[str, Any], List[HostProblem]]:
    """Return the newest steps of tasks as the page draws them, and the problems of hosts that sent none."""
    names: Dict[str, Tuple[str, ...]] = {}
    for task in tasks:
        names[task.host] = (*names.get(task.host, ()), task.name)
    answers, problems = fleet.each(
        lambda host: _ask(fleet, host, names[host.name]), list(names), interruptible=False, timeout_s=PATIENCE_S
    )
    ordered = {host: answers[host] for host in names if host in answers}
    return drawn(time_line(ordered, status, fleet.lead, has_common_steps(fleet.spec))), problems


def _ask(fleet: Fleet, host: Host, tasks: Tuple[str, ...]) -> Answer:
    """Return a host's spans, and the difference of its clock: it read that clock between question and answer."""
    request = FlightRequest(fleet.reference(host.name), tasks, NEWEST)
    asked, began = time.time(), time.monotonic()
    values = rpc.ask(host, fleet.code, fleet.spec.workdir, "flight", to_values(request), PATIENCE_S)
    half_s = (time.monotonic() - began) / 2
    with noise_if_malformed(host.name, "the newest steps of tasks"):
        found = from_values(HostFlights, values)
    return Answer(found.flights, Exchange(found.time - asked - half_s, half_s))
