"""Evidence without hosts: a plan, and the facts of hosts on which everything is right, with changes."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence

from cluster.protocol.typed_json import from_values
from cluster.spec.model import Spec, TaskSpec
from launch.agent.wire.check_request import CheckFacts
from launch.check.findings import Evidence, Finding, Rule
from launch.errors import HostProblem
from launch.hosts.bundle import JobCode
from launch.plan.plan import Plan, make_plan

CODE = {"launcher": "1" * 16, "job": "2" * 16}


def plan_of(*tasks: str, **fields: Any) -> Plan:
    """The plan of tasks written ``worker:1@gpu02``, each on port 2222 of its host; a job unless told otherwise."""
    gpus = fields.pop("gpus", ())  # of each worker
    what: Dict[str, Any] = {"job": None, **fields} if "command" in fields else {"job": "digits", **fields}
    spec = Spec(Path("r.yaml"), "r", tuple(_task(task, gpus) for task in tasks), **what)
    return make_plan(spec, JobCode(Path("."), "digits.py"), "r-1", "/usr/bin/python3")


def _task(text: str, gpus: Sequence[int]) -> TaskSpec:
    name, host = text.split("@")
    role, index = name.split(":")
    return TaskSpec(role, int(index), host, f"{host}:2222", 2222, gpus=tuple(gpus) if role == "worker" else ())


def facts(**changed: Any) -> Dict[str, Any]:
    """What a host tells on which everything is right."""
    return {
        "ports": {"2222": None}, "clock": {"offset_s": 0.001, "error_s": 0.002}, "gaps": [], "names": {},
        "unreached": [], "gpus": {"driver": None, "gpus": []}, "disks": {"~/.launch": disk()}, "missing_programs": [],
        "limits": None, "container": [], "ephemeral": None,
        "run": None, "proxies": [], "unguarded": [], "versions": versions(), **changed,
    }  # fmt: skip


def disk(**changed: Any) -> Dict[str, Any]:
    """A folder with room, of a terabyte."""
    room = {"bytes": 10**12, "free_bytes": 10**12, "inodes": 10**6, "free_inodes": 10**6}
    return {"is_there": True, "writable": True, **room, **changed}


def versions(python: str = "3.7.16", tensorflow: Optional[str] = "1.15.0", **errors: str) -> Dict[str, Any]:
    """What the tasks' Python answers; ``errors`` are of modules that cannot be imported."""
    found: Dict[str, Any] = {"environment_ready": True, "python": {"version": python, "path": "/py"}}
    found.update({"numpy": {"version": "1.19.5"}})
    if tensorflow is not None:
        found["tensorflow"] = {"version": tensorflow}
    return {**found, **{name: {"error": error} for name, error in errors.items()}}


def evidence(
    plan: Plan, told: Mapping[str, Mapping[str, Any]], problems: Sequence[HostProblem] = (), silent: Sequence[str] = ()
) -> Evidence:
    """Evidence in which every host of ``plan`` is fine, but for what is ``told`` of some, and ``silent`` ones."""
    lead = {"ports": {"2222": None, "2223": None}}
    every = {
        host: from_values(CheckFacts, facts(**{**(lead if host == plan.lead else {}), **told.get(host, {})}))
        for host in plan.hosts
        if host not in silent
    }
    return Evidence(every, plan, list(problems), CODE)


def found(rule: Rule, of: Evidence) -> List[str]:
    """What a rule finds: ``hosts: kind: what``."""
    return [f"{','.join(one.hosts)}: {one.kind}: {one.what}" for one in rule(of)]


def only(rule: Rule, of: Evidence) -> Finding:
    """The one thing that a rule finds."""
    (finding,) = rule(of)
    return finding
