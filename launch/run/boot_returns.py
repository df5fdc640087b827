"""The hosts that start their agents again after a boot, under a run that its launcher has left, and the others."""

from dataclasses import replace
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple

from launch.agent.wire.run_request import RunRequest
from launch.plan.plan import Plan

RETURN_S = 540.0  # for a host that boots, before it is lost; tasks wait a little longer for each other
DESERTED_S = 300.0  # for the agent of a lead's host that answers already: folders may be mounted late
ELASTIC_REJOIN_S = 60.0  # for members after a boot of the lead's host: all may have lost power, and boot one by one


class Fragile(NamedTuple):
    """Hosts of which each ends a detached run by a reboot, and the reason; "" for this machine."""

    hosts: Tuple[str, ...]
    why: str


def with_returns(
    plan: Plan, requests: Mapping[str, RunRequest], obstacles: Mapping[str, Optional[str]]
) -> Dict[str, RunRequest]:
    """Return the requests of a detached run in which hosts return after a boot, where nothing is in the way."""
    reasons = boot_obstacles(plan, obstacles)
    returning = [host for host in plan.hosts if host not in reasons]
    return {host: _with_return(plan, request, returning) for host, request in requests.items()}


def _with_return(plan: Plan, request: RunRequest, returning: List[str]) -> RunRequest:
    if plan.lead in returning:
        request = replace(request, stay_s=RETURN_S, deserted_s=DESERTED_S)
    run_plan = request.run_plan
    if run_plan is not None and returning:
        patience = {} if plan.spec.elastic else {host: RETURN_S for host in returning if host != plan.lead}
        run_plan = replace(run_plan, patience=patience, rejoin_s=ELASTIC_REJOIN_S if plan.spec.elastic else RETURN_S)
    return replace(request, returns=request.host in returning, run_plan=run_plan)


def boot_obstacles(plan: Plan, obstacles: Mapping[str, Optional[str]]) -> Dict[str, str]:
    """Return the reason for each host whose boot would not start its agent again.

    What the launcher starts on its own machine has the launcher's environment, which is nobody's to keep.
    """
    spec = plan.spec
    if spec.transport == "slurm":
        return dict.fromkeys(plan.hosts, "Slurm started it")
    here = {host: "" for host in plan.hosts if spec.is_here(host)}
    if spec.secrets:
        return {**dict.fromkeys(plan.hosts, "its secrets are in no file"), **here}
    return {**{host: why for host, why in obstacles.items() if why is not None}, **here}


def fragile(plan: Plan, obstacles: Mapping[str, Optional[str]]) -> List[Fragile]:
    """Return the hosts of which each ends a detached run by a reboot; those with one reason stand together."""
    reasons = boot_obstacles(plan, obstacles)
    needed = [host for host in (plan.hosts if plan.spec.elastic is None else [plan.lead]) if host in reasons]
    by_reason = {
        why: tuple(host for host in needed if reasons[host] == why) for why in map(reasons.__getitem__, needed)
    }
    return [Fragile(hosts, why) for why, hosts in by_reason.items()]
