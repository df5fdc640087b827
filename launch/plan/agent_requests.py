"""Build the requests to the hosts' agents from a plan; see ``launch.agent.wire.run_request``."""

import shlex
from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Tuple

from cluster.protocol.addresses import host_of
from cluster.protocol.settings import HostSettings
from cluster.protocol.typed_json import part_of
from launch.agent.wire.run_request import (
    GRACE_S,
    JOIN_S,
    LOST_S,
    STAY_S,
    LeadAddress,
    RunPlan,
    RunRequest,
    TaskPlan,
    TaskRequest,
)
from launch.hosts.bundle import Code
from launch.plan.plan import Plan

LEASE_S = 15.0  # an attached run ends when its launcher is silent for this time
ELASTIC_STAY_S = 900.0  # for a host without which the run continues, and which may return


def requests(
    plan: Plan,
    code: Code,
    token: str,
    secrets: Mapping[str, str],
    resume: bool,
    file: Optional[str] = None,
    user: Optional[str] = None,
    detached: bool = False,
    follows: Optional[str] = None,
) -> Dict[str, RunRequest]:
    """Return the run request of each host's agent, the lead's first.

    Secrets are sent on stdin only.

    Args:
      file: the arguments by which other verbs find the run, if the path of the hosts file does not suffice.
      user: the user who starts the run, and the user's machine: ``anna@desk7``.
      detached: whether the launcher exits once the run has started.
      follows: the run that this one succeeds; None where a user has started this one.
    """
    spec, checkpoint = plan.spec, plan.spec.train.checkpoint
    tasks: Dict[str, List[TaskRequest]] = {host: [] for host in plan.hosts}
    for task in plan.tasks:
        tasks[task.host].append(task)
    member = RunRequest(
        run=plan.run,
        name=spec.name,
        host="",
        workdir=spec.workdir,
        code=code.hashes,
        file=shlex.quote(str(spec.path)) if file is None else file,
        cluster=plan.cluster,
        tasks=(),
        token=token,
        lead=LeadAddress(plan.lead, plan.control),
        lost_after_s=LOST_S,
        join_s=JOIN_S,
        grace_s=GRACE_S,
        secrets=secrets,
        lease_s=LEASE_S,
        detached=detached,
        resume=resume,
        follows=follows,
        stay_s=ELASTIC_STAY_S if spec.elastic else STAY_S,
        checkpoint_dir=checkpoint.dir,
        keep=checkpoint.keep,
        peers=peers(plan) if spec.guard else None,
        retention=spec.keep,
        user=user,
        **vars(part_of(HostSettings, spec)),
    )
    lead = replace(member, run_plan=_run_plan(plan), replicas=plan.members[: checkpoint.replicas], hooks=spec.hooks)
    return {
        host: replace(
            lead if host == plan.lead else member,
            host=host,
            tasks=tuple(tasks[host]),
            environment=plan.environments.get(host),
            setup=f"launch setup {spec.path}" if host in plan.environments else None,
        )
        for host in plan.hosts
    }


def peers(plan: Plan) -> Tuple[str, ...]:
    """Return the hosts in the task addresses, which a guard resolves to IP addresses."""
    return tuple(dict.fromkeys(host_of(task.address) for task in plan.tasks))


def _run_plan(plan: Plan) -> RunPlan:
    job, elastic, restart = plan.spec.command is None, plan.spec.elastic, plan.spec.restart
    meets_once = not job and not plan.spec.tasks_of("ps")
    return part_of(
        RunPlan,
        plan.spec,
        run=plan.run,
        hosts=list(plan.hosts),
        tasks=[part_of(TaskPlan, task) for task in plan.tasks],
        steps=plan.spec.train.steps if job else None,
        judge="outcome" if job else "exit",
        keeps_state=plan.spec.keeps_state,
        restart_max=restart.max,
        restart_window_s=restart.window_s,
        restart_together=meets_once if restart.together is None else restart.together,
        backoff_s=restart.backoff_s,
        control=plan.control,
        min_workers=elastic.min_workers if elastic else None,
        frozen_s=restart.frozen_s,
    )
