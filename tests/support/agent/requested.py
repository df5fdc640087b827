"""Requests to agents, of which a test says only what it is about."""

from typing import Any, Dict

from launch.agent.wire.run_request import LeadAddress, RunPlan, RunRequest, TaskPlan, TaskRequest

RUN = "r-20260101-000000"


def task_request(name: str = "worker:0", **changes: Any) -> TaskRequest:
    """A task of the host ``h``."""
    role, index = name.split(":")
    fields: Dict[str, Any] = {
        "role": role, "index": int(index), "host": "h", "address": "h:2222", "chief": False, "spare": False,
        "argv": ("true",), "env": {}, "folder": "job", "port": 2222, **changes,
    }  # fmt: skip
    return TaskRequest(name, **fields)


def run_request(*tasks: TaskRequest, **changes: Any) -> RunRequest:
    """What the host ``h``, which leads, is asked to run."""
    fields: Dict[str, Any] = {
        "run": RUN, "name": "r", "host": "h", "workdir": "~/w", "code": {}, "file": "r.yaml", "cluster": "{}",
        "token": "t", "lead": LeadAddress("h"), "lost_after_s": 10.0, "join_s": 20.0, "grace_s": 10.0, **changes,
    }  # fmt: skip
    return RunRequest(tasks=tasks, **fields)


def run_plan(*addresses: str) -> RunPlan:
    """A run of workers at these addresses."""
    hosts = [address.rsplit(":", 1)[0] for address in addresses]
    tasks = [
        TaskPlan(f"worker:{index}", "worker", index, host, address, chief=index == 0, spare=False)
        for index, (host, address) in enumerate(zip(hosts, addresses))
    ]
    return RunPlan(RUN, "r", hosts, tasks)
