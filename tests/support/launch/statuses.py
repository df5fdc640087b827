"""Statuses of a run as a lead reports them."""

from typing import Any

from launch.status.run import RunStatus
from launch.status.task import TaskStatus


def task(name: str = "worker:0@gpu01", state: str = "running", **fields: Any) -> TaskStatus:
    """One of a run's tasks."""
    who, host = name.split("@")
    role, index = who.split(":")
    log = f"/w/runs/r-1/{role}.{index}/attempt_0.log"
    known = {"address": f"{host}:2222", "state": state, "pid": 42, "log": log, **fields}
    return TaskStatus(role, int(index), host, **known)


def status(*tasks: TaskStatus, state: str = "running", **fields: Any) -> RunStatus:
    """A run of these tasks, of one if none is named."""
    return RunStatus("r-1", "r", state, tasks=list(tasks) or [task()], **fields)
