"""The file of a world's run, and the plans of the runs that launchers begin from it, in the place of ``draft``."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, NamedTuple, Tuple

from cluster.protocol.settings import Elastic
from cluster.spec.model import Spec, Ssh, TaskSpec
from cluster.task import Checkpoint, Train
from launch.agent.wire.run_request import RunPlan, RunRequest, TaskPlan
from launch.hosts.bundle import JobCode
from launch.plan.plan import Plan
from launch.run.draft import RunStart
from tests.simulation.runs import lead_of, plan_of, request_of


class Drafted(NamedTuple):
    """A run that a program has drafted, which has not begun or is the present one."""

    program: Any
    plan: RunPlan


class Target:
    """A hosts file with the run's hosts."""

    file, run, local, selects = "r.yaml", None, False, False
    as_started = file

    def __init__(self, spec: Spec):
        self._spec = spec

    def __str__(self) -> str:
        return self.file

    def spec(self) -> Spec:
        return self._spec

    def job(self, spec: Spec) -> JobCode:
        return JobCode(None, "")


def spec_of(world: Any) -> Spec:
    """Return what the file says."""
    tasks = [
        TaskSpec(each.role, each.index, each.host, each.address, int(each.address.rsplit(":", 1)[1]), spare=each.spare)
        for each in world.plan.tasks
    ]
    shape = world.shape
    train = Train(checkpoint=Checkpoint(replicas=shape.replicas))
    elastic, ssh = Elastic(1) if shape.elastic else None, Ssh(connect_timeout_s=shape.connect_s)
    return Spec(Path("r.yaml"), "r", tuple(tasks), train=train, elastic=elastic, ssh=ssh)


def pythons(spec: Spec) -> Dict[str, str]:
    """Return the Python of each host, the lead first."""
    others = [host for host in sorted(spec.hosts) if host != spec.chief.host]
    return dict.fromkeys([spec.chief.host, *others], "python3")


def drafted(world: Any, start: RunStart, run: str) -> Tuple[RunPlan, Plan, Dict[str, RunRequest]]:
    """Return the lead's plan of a run, the launcher's, and the requests to its hosts."""
    shape, spec = world.shape._replace(returns=False), start.spec  # the launcher learns what boots start
    of_spec = replace(
        plan_of(shape, world.plan.steps), run=run, hosts=list(pythons(spec)), control=f"{spec.chief.host}:2000",
        tasks=[_task(each, each is spec.chief) for each in spec.tasks],
    )  # fmt: skip
    asked = {host: request_of(shape, of_spec, host) for host in of_spec.hosts}
    requests = {
        host: replace(each, run=run, token=run, detached=start.detach, follows=start.follows)
        for host, each in asked.items()
    }
    plan = Plan(run, spec, (), lead_of(of_spec), of_spec.control, pythons(spec), asked[spec.chief.host].cluster)
    return of_spec, plan, requests


def _task(task: TaskSpec, chief: bool) -> TaskPlan:
    return TaskPlan(f"{task.role}:{task.index}", task.role, task.index, task.host, task.address, chief, task.spare)
