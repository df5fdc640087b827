"""The plan of a run, built from a hosts file: the host, the argv and the environment of each process.

A plan is computed from a spec and the lock file that the spec names. Planning connects to no host.
"""

import json
import re
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Dict, Mapping, Optional, Sequence, Set, Tuple

from cluster.protocol.command_template import fill
from cluster.protocol.env_values import literal
from cluster.protocol.typed_json import part_of
from cluster.spec.model import ROLE_ORDER, Spec, TaskSpec
from cluster.task import MEMBERS, tf_config
from launch.agent.wire.run_request import TaskRequest
from launch.environments import identity
from launch.errors import UsageError
from launch.hosts.bundle import JobCode
from launch.plan.rank_variables import rank_variables

PYTHON = "python3.7"  # on the hosts, where the file names none
AGENT_PYTHON = "python3"  # same, where it runs only agents: the tasks run in containers
_HUGE_PAGES = "glibc.malloc.hugetlb=1"  # fewer TLB misses in large embedding tables
LONGEST_TEXT = 32 * 4096 - 1  # most bytes of one argument or variable that Linux passes to a process


@dataclass(frozen=True)
class Plan:
    """A run before its start. ``control`` is the address of the lead agent, to which all other agents connect.

    ``cluster`` is the JSON text of the cluster in ``TF_CONFIG``, {role: addresses}. ``python`` runs the agents, and the
    tasks on hosts without an environment or a container.
    """

    run: str
    spec: Spec
    tasks: Tuple[TaskRequest, ...]
    lead: str
    control: Optional[str]
    python: Mapping[str, str]  # of each host
    cluster: str
    environments: Mapping[str, str] = field(default_factory=dict)  # {host: hash} of those by launch setup

    @property
    def hosts(self) -> Tuple[str, ...]:
        """Return every host once, the lead first."""
        return tuple(self.python)

    @property
    def members(self) -> Tuple[str, ...]:
        """Return every host except the lead."""
        return tuple(host for host in self.python if host != self.lead)

    def task_python(self, host: str) -> str:
        """Return the Python of a host's tasks; in a container or an environment, it is not the agent's Python."""
        if self.spec.container is not None:
            return self.spec.container.python
        made = self.environments.get(host)
        return self.python[host] if made is None else f"{self.spec.workdir}/envs/{made}/bin/python"

    def environment(self, task: TaskRequest) -> Dict[str, str]:
        """Return the environment variables of ``task``, including its ``TF_CONFIG``, which contains ``cluster``."""
        return {**task.env, "TF_CONFIG": tf_config(self.cluster, task.role, task.index)}


def run_name(name: str, now: datetime) -> str:
    """Return the full name of a run that starts at ``now``, such as ``digits-20261120-155902``; the time is in UTC."""
    return f"{name}-{now.astimezone(timezone.utc):%Y%m%d-%H%M%S}"


def make_plan(spec: Spec, job: JobCode, run: str, own_python: str) -> Plan:
    """Return the plan of a run. ``own_python`` runs agents and tasks on this machine if the file names no Python.

    Raises:
      UsageError: the file names two Pythons for one host.
    """
    python = pythons(spec, own_python)
    environments = identity.identities(spec, python)
    runs = {host: identity.PYTHON if host in environments else python[host] for host in python}
    if spec.container is not None:
        runs = dict.fromkeys(python, spec.container.python)
    cluster = {role: [task.address for task in spec.tasks_of(role)] for role in MEMBERS}
    present = {spec.known_as(role): addresses for role, addresses in cluster.items() if addresses}
    chief = spec.chief
    control = _control(spec, chief)
    ranks = rank_variables(spec, control)
    commands = {role: _command(spec, job, role, cluster) for role in ROLE_ORDER}
    tasks = tuple(
        _task(
            spec=spec,
            task=task,
            command=commands[task.role],
            job=job,
            run=run,
            python=runs[task.host],
            chief=task is chief,
            ranks=ranks.get(task.name, {}),
        )
        for task in spec.tasks
    )
    return Plan(
        run=run,
        spec=spec,
        tasks=tasks,
        lead=chief.host,
        control=control,
        python=python,
        cluster=json.dumps(present),
        environments=environments,
    )


def pythons(spec: Spec, own: str) -> Dict[str, str]:
    """Return the Python of each host, the lead's first: {host: python}.

    Raises:
      UsageError: the file names two Pythons for one host.
    """
    named: Dict[str, Set[str]] = {host: set() for host in (spec.chief.host, *spec.hosts)}
    for task in spec.tasks:
        if task.python:
            named[task.host].add(task.python)
    return {host: _python(spec, host, found, own) for host, found in named.items()}


def _python(spec: Spec, host: str, named: Set[str], own: str) -> str:
    if len(named) > 1:
        raise UsageError(f"{host}: expected one python for all tasks of a host, found {' and '.join(sorted(named))}")
    there = PYTHON if spec.container is None else AGENT_PYTHON
    return named.pop() if named else spec.python or (own if spec.is_here(host) else there)


def _control(spec: Spec, chief: TaskSpec) -> Optional[str]:
    """Return the lead's control address; None for a run on one host."""
    if len(spec.hosts) == 1:
        return None
    above = max(task.port for task in spec.tasks if task.host == chief.host) + 1
    port = spec.lead_ports.get(chief.host, above)
    return f"{chief.address.rsplit(':', 1)[0]}:{port}"


def _job_command(spec: Spec, job: JobCode) -> Tuple[str, ...]:
    """Return the argv after the Python, the same for every task of a job."""
    entry = f"{{code}}/{job.entry}" if job.entry.endswith(".py") else job.entry
    return ("-m", "jobs.main", entry, "--train", _literally(spec.train.to_dict()), "--args", _literally(spec.args))


def _literally(values: Mapping[str, Any]) -> str:
    """Return JSON without placeholders: a brace before a name becomes an escape."""
    return re.sub(r"{(?=[A-Za-z_])", r"\\u007b", json.dumps(values))


def _command(spec: Spec, job: JobCode, role: str, cluster: Mapping[str, Sequence[str]]) -> Tuple[str, ...]:
    """Return the argv shared by all tasks of a role; for a job, without Python."""
    if spec.command is None:
        return _job_command(spec, job)
    return _filled(spec.command_of(role), cluster, spec.chief.address)


def _filled(command: Sequence[str], cluster: Mapping[str, Sequence[str]], chief: str) -> Tuple[str, ...]:
    """Return ``command:`` with the placeholders filled in that are the same for every task, such as ``{ps_hosts}``."""
    values = {f"{role}_hosts": ",".join(addresses) for role, addresses in cluster.items()}
    values.update(chief_address=chief, num_ps=str(len(cluster["ps"])), num_workers=str(len(cluster["worker"])))
    return tuple(fill(word, values) for word in command)


def _task(
    spec: Spec,
    task: TaskSpec,
    command: Tuple[str, ...],
    job: JobCode,
    run: str,
    python: str,
    chief: bool,
    ranks: Mapping[str, str],
) -> TaskRequest:
    env = {
        **ranks,
        **({"GLIBC_TUNABLES": _HUGE_PAGES} if task.role == "ps" and spec.command is None else {}),
        **task.env,
        "CUDA_VISIBLE_DEVICES": task.gpus if isinstance(task.gpus, str) else ",".join(map(str, task.gpus)),
        "PYTHONUNBUFFERED": "1",
        "LAUNCH_RUN": run,
        "LAUNCH_ATTEMPT": "0",
    }
    if job.folder is not None:
        env["LAUNCH_JOB_DIR"] = literal(str(job.folder))
    if spec.command is not None:
        own = {
            "python": python, "role": spec.known_as(task.role), "index": str(task.index), "address": task.address,
            "port": str(task.port), "run": run,
        }  # fmt: skip
        argv = tuple(fill(word, own) for word in command)
    else:
        argv = (python, *command)
        if "." in job.entry and not job.entry.endswith(".py") and job.folder is not None:
            env["PYTHONPATH"] = "{code}"
    return part_of(
        TaskRequest,
        task,
        name=task.name,
        argv=argv,
        env=env,
        folder="launcher" if spec.command is None else "job",
        chief=chief,
        saves=not spec.train.verify,
        waits=spec.command is None and not spec.train.verify,
    )


def refuse_oversized(plan: Plan) -> None:
    """Refuse a plan whose tasks need a longer argument or variable than Linux passes to a process.

    Every task receives the whole cluster, in its environment or its arguments.

    Raises:
      UsageError: the text with the cluster is too long.
    """
    excess = oversized(plan)
    if excess is not None:
        raise UsageError(f"{plan.spec.path}: {excess}")


def oversized(plan: Plan) -> Optional[str]:
    """Return a message about the first text that is too long for the last task's process; None if all fit."""
    last = plan.tasks[-1]
    texts = [("TF_CONFIG", f"TF_CONFIG={plan.environment(last)['TF_CONFIG']}")]
    texts += [(f"argument {index}", word) for index, word in enumerate(last.argv)]
    for name, text in texts:
        if len(text) > LONGEST_TEXT:
            found = f"{len(text):,} for {len(plan.tasks):,} tasks"
            most = f"at most {LONGEST_TEXT:,} bytes, which is Linux's limit for one argument or variable"
            return f"{name}: expected {most}, found {found}; use fewer tasks, or shorter host names"
    return None
