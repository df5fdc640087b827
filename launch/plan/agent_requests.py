"""The requests to the hosts' agents, made of a plan; see ``launch.agent.wire.run_request``."""

import shlex
from dataclasses import replace
from typing import Dict, List, Mapping, Optional, Tuple

from cluster.protocol.addresses import host_of
from launch.agent.wire.container import ContainerRequest
from launch.agent.wire.run_plan import RunPlan, TaskPlan
from launch.agent.wire.run_request import HookRequest, LeadAddress, NoticeRequest, RunRequest, TaskRequest
from launch.hostfile.keep import rule_of
from launch.hosts.bundle import Code
from launch.plan.plan import Plan

LEASE_S = 15.0  # an attached run ends when its launcher is silent for so long
LOST_S = 10.0  # a host is lost when its agent is silent for so long
JOIN_S = 20.0  # for the members' agents to reach the lead's at the start
STAY_S = 20.0  # for a member's agent to wait for a lead that is silent
ELASTIC_STAY_S = 900.0  # where the run goes on without its host, and takes it back
GRACE_S = 10.0  # between TERM and KILL


def requests(
    plan: Plan,
    code: Code,
    token: str,
    secrets: Mapping[str, str],
    resume: bool,
    file: Optional[str] = None,
    user: Optional[str] = None,
    detached: bool = False,
) -> Dict[str, RunRequest]:
    """Return the run request of each host's agent, the lead's first.

    Secrets travel on stdin only.

    Args:
      file: the words that name the run to another verb, where those are more than the hosts file.
      user: who starts the run, and on which machine.
      detached: whether the launcher leaves the run once it is up.
    """
    tasks: Dict[str, List[TaskRequest]] = {host: [] for host in plan.hosts}
    for task in plan.tasks:
        tasks[task.host].append(task)
    named = shlex.quote(str(plan.spec.path)) if file is None else file
    addresses = peers(plan) if plan.spec.guard else None
    return {
        host: replace(
            _request(
                plan=plan,
                host=host,
                tasks=tuple(tasks[host]),
                code=code,
                token=token,
                secrets=secrets,
                resume=resume,
                file=named,
                addresses=addresses,
            ),
            user=user,
            detached=detached,
        )
        for host in plan.hosts
    }


def peers(plan: Plan) -> Tuple[str, ...]:
    """Return the names that a guard resolves to the addresses of the cluster."""
    return tuple(dict.fromkeys(host_of(task.address) for task in plan.tasks))


def _request(
    plan: Plan,
    host: str,
    tasks: Tuple[TaskRequest, ...],
    code: Code,
    token: str,
    secrets: Mapping[str, str],
    resume: bool,
    file: str,
    addresses: Optional[Tuple[str, ...]],
) -> RunRequest:
    checkpoint, environment, leads = plan.spec.train.checkpoint, plan.environments.get(host), host == plan.lead
    return RunRequest(
        run=plan.run,
        name=plan.spec.name,
        host=host,
        workdir=plan.spec.workdir,
        code=code.hashes,
        file=file,
        cluster=plan.cluster,
        tasks=tasks,
        token=token,
        lead=LeadAddress(plan.lead, plan.control),
        lost_after_s=LOST_S,
        join_s=JOIN_S,
        grace_s=GRACE_S,
        secrets=secrets,
        lease_s=LEASE_S,
        resume=resume,
        stay_s=ELASTIC_STAY_S if plan.spec.elastic else STAY_S,
        checkpoint_dir=checkpoint.dir,
        keep=checkpoint.keep,
        guard=plan.spec.guard,
        peers=addresses,
        allow_public=plan.spec.allow_public,
        environment=environment,
        setup=f"launch setup {plan.spec.path}" if environment is not None else None,
        run_plan=_run_plan(plan) if leads else None,
        replicas=plan.members[: checkpoint.replicas] if leads else (),
        retention=rule_of(plan.spec),
        hooks=tuple(HookRequest(each.event, each.command, each.url, each.headers) for each in plan.spec.hooks)
        if leads
        else (),
        after=plan.spec.after,
        notice=NoticeRequest(plan.spec.notice.command, plan.spec.notice.every_s) if plan.spec.notice else None,
        container=container(plan),
    )


def container(plan: Plan) -> Optional[ContainerRequest]:
    """Return the request for the container of the plan's tasks; None where they run in none."""
    given = plan.spec.container
    return None if given is None else ContainerRequest(given.image, given.python, given.runtime, given.args)


def _run_plan(plan: Plan) -> RunPlan:
    tasks = [
        TaskPlan(
            name=task.name,
            role=task.role,
            index=task.index,
            host=task.host,
            address=task.address,
            chief=task.chief,
            spare=task.spare,
        )
        for task in plan.tasks
    ]
    job, elastic, restart = plan.spec.command is None, plan.spec.elastic, plan.spec.restart
    return RunPlan(
        run=plan.run,
        name=plan.spec.name,
        hosts=list(plan.hosts),
        tasks=tasks,
        steps=plan.spec.train.steps if job else None,
        judge="outcome" if job else "exit",
        restart_max=restart.max,
        backoff_s=restart.backoff_s,
        control=plan.control,
        join_s=JOIN_S,
        lost_after_s=LOST_S,
        grace_s=GRACE_S,
        leave_s=plan.spec.leave_s,
        min_workers=elastic.min_workers if elastic else None,
        frozen_s=restart.frozen_s,
    )
