"""The run of a seed: its hosts, tasks and settings, and what the launcher asks its agents for."""

from random import Random
from typing import List, NamedTuple, Optional, Sequence

from launch.agent.supervision.formation import form
from launch.agent.wire.run_request import GRACE_S, JOIN_S, LOST_S, STAY_S, RunPlan, RunRequest, TaskPlan, TaskRequest
from launch.agent.wire.run_request import LeadAddress as LeadPlace
from launch.plan.agent_requests import ELASTIC_STAY_S, LEASE_S
from launch.run.draft import DESERTED_S, ELASTIC_REJOIN_S, RETURN_S

RUN = "r-20260101-000000"
STEPS = 1500  # ten minutes, without a fault
PAUSES_FROM = 400_000  # the first seed of the runs that may pause as long before a restart as until a host is lost
DENSE_FROM = 500_000  # the first seed of short runs with many faults, up to TOGETHER_FROM
TOGETHER_FROM = 1_000_000  # the first seed of the runs whose workers restart together
FURTHER_FROM = 2_000_000  # the first seed with the product's launcher, and with faults of launchers, keepers and disks
FAILOVER_FROM = 2_500_000  # the first seed of the runs that a launcher continues where it loses the chief's host
FURTHER_DENSE_FROM = 3_000_000  # the first seed of such runs with the product's launcher; one in three has failover


class Shape(NamedTuple):
    """The hosts and settings of a run."""

    hosts: int
    ps: int
    workers: int
    elastic: bool
    detached: bool
    returns: bool  # boots start agents again
    spare: bool  # a ps that waits
    delay_s: float  # of the network, for each piece
    rates: Sequence[float]
    together: bool = False  # workers restart together
    replicas: int = 0  # hosts with copies of the checkpoints
    connect_s: float = 10.0  # for a launcher to reach a host
    backoff_s: float = RunPlan.backoff_s


def shape(random: Random) -> Shape:
    """The run of a seed."""
    hosts = random.randint(3, 6)
    rates = [random.choice([1.0, 1.0, 1.0, 0.97, 1.03]) for _ in range(hosts)]
    ps, workers = random.randint(1, 2), random.randint(2, 5)
    elastic, detached, returns, spare = (random.random() < share for share in (0.5, 0.6, 0.5, 0.3))
    delay_s = random.choice([0.0005, 0.002, 0.002, 0.02])
    return Shape(hosts, ps, workers, elastic, detached, detached and returns, elastic and spare, delay_s, rates)


def run_of(seed: int, random: Random) -> Shape:
    """Return the run of a seed; a launcher knows no host without a task."""
    of = shape(random)
    if has_later_faults(seed):
        return of._replace(backoff_s=Random(seed + 16).choice([1.0, 6.5, 13.0]))
    if seed < FURTHER_FROM:
        return of._replace(together=seed >= TOGETHER_FROM)
    of = of._replace(together=seed % 2 == 1, hosts=min(of.hosts, max(of.workers, of.ps + 1)))
    return _with_failover(of, Random(seed + 8)) if has_failover(seed) else of


def has_failover(seed: int) -> bool:
    """Return whether a launcher continues the run of a seed where it loses the chief's host."""
    return seed >= FAILOVER_FROM and (seed < FURTHER_DENSE_FROM or seed % 3 == 0)


def _with_failover(of: Shape, random: Random) -> Shape:
    """Return a run that is attached and elastic, and has copies."""
    replicas, connect_s, spare = random.choice([1, 1, 2]), random.choice([1.0, 3.0, 10.0]), random.random() < 0.3
    return of._replace(
        elastic=True, detached=False, returns=False, spare=spare, replicas=min(replicas, of.hosts - 1),
        connect_s=connect_s,
    )  # fmt: skip


def has_later_faults(seed: int) -> bool:
    """Return whether a seed may have long pauses before restarts, and second notices to hosts that leave."""
    return PAUSES_FROM <= seed < TOGETHER_FROM


def is_dense(seed: int) -> bool:
    """Return whether a seed has a short run with many faults."""
    return DENSE_FROM <= seed < TOGETHER_FROM or seed >= FURTHER_DENSE_FROM


def plan_of(of: Shape, steps: Optional[int] = None) -> RunPlan:
    """The lead's knowledge of such a run."""
    hosts = [f"h{index}" for index in range(of.hosts)]
    patient = dict.fromkeys(hosts[1:], RETURN_S) if of.returns and not of.elastic else {}
    rejoin_s = (ELASTIC_REJOIN_S if of.elastic else RETURN_S) if of.returns else None
    return RunPlan(
        RUN, "r", hosts, _tasks(of, hosts), steps=steps or STEPS, restart_max=4, control="h0:2000", frozen_s=None,
        min_workers=1 if of.elastic else None, patience=patient, rejoin_s=rejoin_s, restart_together=of.together,
        backoff_s=of.backoff_s,
    )  # fmt: skip


def lead_of(plan: RunPlan) -> str:
    """Return the chief's host, on which the lead is."""
    return next(task.host for task in plan.tasks if task.chief)


def _tasks(of: Shape, hosts: Sequence[str]) -> List[TaskPlan]:
    tasks: List[TaskPlan] = []
    for role, number in [("ps", of.ps), ("worker", of.workers)]:
        for index in range(number):
            host = hosts[(index + (role == "ps")) % of.hosts]  # the chief is on the lead's
            chief = role == "worker" and index == 0
            address = f"{host}:{3000 + len(tasks)}"
            tasks.append(TaskPlan(f"{role}:{index}", role, index, host, address, chief, spare=False))
    if of.spare:
        tasks.append(TaskPlan(f"ps:{of.ps}", "ps", of.ps, hosts[-1], f"{hosts[-1]}:4000", False, spare=True))
    return tasks


def request_of(of: Shape, plan: RunPlan, host: str) -> RunRequest:
    """The launcher's request to a host's agent."""
    env = {"LAUNCH_RUN": plan.run}  # by which, and by the task's folder, the product knows a task's children
    tasks = tuple(
        TaskRequest(**vars(t), argv=("true",), env=env, folder="job", port=2222, waits=True)
        for t in plan.tasks
        if t.host == host
    )
    lead = lead_of(plan)
    stay_s = RETURN_S if of.returns else ELASTIC_STAY_S if of.elastic else STAY_S
    return RunRequest(
        RUN, "r", host, "~/w", {}, "r.yaml", form(0, plan.tasks, ()).cluster, tasks, "token",
        LeadPlace(lead, plan.control), lost_after_s=LOST_S, join_s=JOIN_S, grace_s=GRACE_S, lease_s=LEASE_S,
        detached=of.detached, run_plan=plan if host == lead else None, returns=of.returns,
        stay_s=stay_s, deserted_s=DESERTED_S if of.returns else RunRequest.deserted_s,
    )  # fmt: skip
