"""What a hosts file becomes: which process runs where, with which argv and environment.

Pure: a plan is computed from a spec and reaches no host.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from cluster.spec.model import Spec, TaskSpec, is_local
from launch.errors import UsageError
from launch.ship import Code, JobCode

PYTHON = "python3.7"  # on the hosts, where the file names none
LEASE_S = 15.0  # an attached run ends when its launcher is silent for so long
LOST_S = 10.0  # a host is lost when its agent is silent for so long
JOIN_S = 20.0  # for the members' agents to reach the lead's at the start
GRACE_S = 10.0  # between TERM and KILL


@dataclass(frozen=True)
class PlannedTask:
    """One process. ``folder`` says in which bundle it runs; ``{code}`` in argv is the job's."""

    name: str
    role: str
    index: int
    host: str
    address: str
    port: int
    gpus: Any
    argv: Tuple[str, ...]
    env: Mapping[str, str]
    folder: str
    chief: bool


@dataclass(frozen=True)
class Plan:
    """A run before it starts. ``control`` is where the members' agents dial the lead's."""

    run: str
    spec: Spec
    tasks: Tuple[PlannedTask, ...]
    lead: str
    control: Optional[str]
    python: Mapping[str, str]  # of each host, the lead first

    @property
    def hosts(self) -> Tuple[str, ...]:
        """Every host once, the lead first."""
        return tuple(self.python)

    def tasks_on(self, host: str) -> List[PlannedTask]:
        """The tasks of one host."""
        return [task for task in self.tasks if task.host == host]


def run_name(name: str, now: datetime) -> str:
    """``digits-20261120-155902``"""
    return f"{name}-{now:%Y%m%d-%H%M%S}"


def localised(spec: Spec, ports: Sequence[int]) -> Spec:
    """Every task of a spec on this machine: ``ports`` has a free one for each; no GPUs, same towers."""
    tasks = tuple(
        replace(task, host="localhost", address=f"localhost:{port}", port=port, gpus=(), python=None)
        for task, port in zip(spec.tasks, ports)
    )
    return replace(spec, tasks=tasks, python=None, train=replace(spec.train, towers=towers(spec)))


def towers(spec: Spec) -> Any:
    """``train.towers`` with ``auto`` resolved where the file alone tells: one a GPU of a worker."""
    chosen = [task.gpus for task in spec.tasks if task.role in ("chief", "worker")]
    counts = {len(gpus) for gpus in chosen if not isinstance(gpus, str)}
    if spec.train.towers != "auto" or len(counts) != 1:
        return spec.train.towers
    return max(1, counts.pop() // spec.train.stages)


def make_plan(spec: Spec, job: JobCode, run: str, own_python: str) -> Plan:
    """The plan of a run. ``own_python`` runs what is on this machine, where the file names none.

    Raises:
      UsageError: a host is given two Pythons, or a key asks for what is not there yet.
    """
    refuse_unavailable(spec)
    python = pythons(spec, own_python)
    cluster = {
        role: [t.address for t in spec.tasks_of(role)] for role in ("chief", "worker", "ps") if spec.tasks_of(role)
    }
    tasks = tuple(_task(spec, task, cluster, job, run, python[task.host]) for task in spec.tasks)
    return Plan(run, spec, tasks, spec.chief.host, _control(spec, spec.chief.host), python)


def refuse_unavailable(spec: Spec) -> None:
    """Keys that jobs cannot serve yet are refused before anything starts."""
    if spec.job is None:
        return
    if spec.train.wire != "float32":
        raise UsageError(f"{spec.path}: train.wire: {spec.train.wire} is not available yet; expected float32")


def pythons(spec: Spec, own: str) -> Dict[str, str]:
    """The Python of each host, the lead's first: {host: python}.

    Raises:
      UsageError: a host is given two Pythons.
    """
    hosts = dict.fromkeys([spec.chief.host, *spec.hosts])
    return {host: _python(spec, host, own) for host in hosts}


def _python(spec: Spec, host: str, own: str) -> str:
    named = {task.python for task in spec.tasks if task.host == host and task.python}
    if len(named) > 1:
        raise UsageError(f"{host}: expected one python for all tasks of a host, found {' and '.join(sorted(named))}")
    return named.pop() if named else spec.python or (own if is_local(host) else PYTHON)


def _control(spec: Spec, lead: str) -> Optional[str]:
    """The first port above those of the lead's tasks, where other hosts have to dial it."""
    if len(spec.hosts) == 1:
        return None
    port = max(task.port for task in spec.tasks if task.host == lead) + 1
    return f"{spec.chief.address.rsplit(':', 1)[0]}:{port}"


def _task(spec: Spec, task: TaskSpec, cluster: Mapping[str, Any], job: JobCode, run: str, python: str) -> PlannedTask:
    shown = {"cluster": cluster, "task": {"type": task.role, "index": task.index}}
    env = {
        **task.env,
        "TF_CONFIG": json.dumps(shown),
        "CUDA_VISIBLE_DEVICES": task.gpus if isinstance(task.gpus, str) else ",".join(map(str, task.gpus)),
        "PYTHONUNBUFFERED": "1",
        "LAUNCH_RUN": run,
        "LAUNCH_ATTEMPT": "0",
    }
    if spec.command is not None:
        argv = tuple(fill(word, task, cluster, python) for word in spec.command)
    else:
        argv = _job_argv(spec, job, python)
        if "." in job.entry and not job.entry.endswith(".py") and job.folder is not None:
            env["PYTHONPATH"] = "{code}"
    gpus = task.gpus if isinstance(task.gpus, str) else list(task.gpus)
    folder = "launcher" if spec.command is None else "job"
    return PlannedTask(
        task.name,
        task.role,
        task.index,
        task.host,
        task.address,
        task.port,
        gpus,
        argv,
        env,
        folder,
        task == spec.chief,
    )


def _job_argv(spec: Spec, job: JobCode, python: str) -> Tuple[str, ...]:
    entry = f"{{code}}/{job.entry}" if job.entry.endswith(".py") else job.entry
    settings = json.dumps(asdict(spec.train)), json.dumps(spec.args)
    return (python, "-m", "jobs.main", entry, "--train", settings[0], "--args", settings[1])


def fill(word: str, task: TaskSpec, cluster: Mapping[str, Iterable[str]], python: str) -> str:
    """One word of ``command:`` for one task. Braces that are no placeholder stay."""
    values = {
        "python": python, "role": task.role, "index": str(task.index),
        **{f"{role}_hosts": ",".join(cluster.get(role, ())) for role in ("ps", "worker", "chief")},
    }  # fmt: skip
    for name, value in values.items():
        word = word.replace("{" + name + "}", value)
    return word


def requests(plan: Plan, code: Code, token: str, secrets: Mapping[str, str], resume: bool) -> Dict[str, Dict[str, Any]]:
    """What each host's agent is asked to run: {host: request}. Secrets travel on stdin only."""
    return {host: _request(plan, host, code, token, secrets, resume) for host in plan.hosts}


def _request(plan: Plan, host: str, code: Code, token: str, secrets: Mapping[str, str], resume: bool) -> Dict[str, Any]:
    request: Dict[str, Any] = {
        "run": plan.run, "name": plan.spec.name, "host": host, "workdir": plan.spec.workdir, "code": code.hashes,
        "tasks": [asdict(task) for task in plan.tasks_on(host)], "token": token, "secrets": dict(secrets),
        "lead": {"host": plan.lead, "address": plan.control}, "lease_s": LEASE_S, "lost_after_s": LOST_S,
        "join_s": JOIN_S, "grace_s": GRACE_S, "resume": resume, "checkpoint_dir": plan.spec.train.checkpoint.dir,
    }  # fmt: skip
    if host == plan.lead:
        request["run_plan"] = _run_plan(plan)
    return request


def _run_plan(plan: Plan) -> Dict[str, Any]:
    tasks = [
        {"name": t.name, "role": t.role, "index": t.index, "host": t.host, "address": t.address, "chief": t.chief}
        for t in plan.tasks
    ]
    job = plan.spec.command is None
    return {
        "run": plan.run, "name": plan.spec.name, "hosts": list(plan.hosts), "tasks": tasks,
        "steps": plan.spec.train.steps if job else None, "judge": "outcome" if job else "exit",
        "restart_max": plan.spec.restart.max, "backoff_s": plan.spec.restart.backoff_s,
        "control": plan.control, "join_s": JOIN_S, "lost_after_s": LOST_S, "grace_s": GRACE_S,
    }  # fmt: skip


def shown(plan: Plan, code: Code) -> Dict[str, Any]:
    """``plan --json`` without placement and network."""
    folder = f"{plan.spec.workdir}/code/{code.hashes.get('job', '')}"
    tasks = [
        {
            "role": task.role, "index": task.index, "host": task.host, "address": task.address, "gpus": task.gpus,
            "argv": [word.replace("{code}", folder) for word in task.argv],
            "env": {**{key: value.replace("{code}", folder) for key, value in task.env.items()},
                    **dict.fromkeys(plan.spec.secrets, "(secret)")},
            "log": f"{plan.spec.workdir}/runs/{plan.run}/{task.role}.{task.index}/attempt_0.log",
        }
        for task in plan.tasks
    ]  # fmt: skip
    return {"name": plan.spec.name, "lead": plan.lead, "control": plan.control, "tasks": tasks}
