"""The removal of past runs and unused code on this host, as ``launch prune`` asks for it."""

import time

from launch.agent.retention import pruning
from launch.agent.retention.past_runs import Clocks
from launch.agent.state.run_folder import expand
from launch.agent.wire.verb_requests import PruneRequest
from launch.status.pruned import PruneAnswer


def prune(request: PruneRequest) -> PruneAnswer:
    """Return what goes by the rules, and remove it if that is asked for."""
    place = pruning.Place(expand(request.workdir), request.hosts, {request.name: request.rule})
    clocks = Clocks(time.time(), request.now)
    return pruning.prune(place, clocks) if request.remove else pruning.look(place, clocks)
