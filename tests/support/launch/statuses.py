"""Statuses of a run as a lead reports them."""

from typing import Any, Iterable, Optional, Tuple

from launch.status.run import RunStatus
from launch.status.run_history import RunHistory
from launch.status.task import TaskStatus


def task(name: str = "worker:0@gpu01", state: str = "running", **fields: Any) -> TaskStatus:
    """One of a run's tasks."""
    who, host = name.split("@")
    role, index = who.split(":")
    log = f"/w/runs/r-1/{role}.{index}/attempt_0.log"
    known = {"address": f"{host}:2222", "state": state, "pid": 42, "log": log, **fields}
    return TaskStatus(role, int(index), host, **known)


def history(points: Iterable[Tuple[int, Optional[float]]], **fields: Any) -> RunHistory:
    """A learning curve of these steps and losses."""
    rows = list(points)
    return RunHistory([step for step, _ in rows], [loss for _, loss in rows], [10.0] * len(rows), **fields)


def status(*tasks: TaskStatus, state: str = "running", **fields: Any) -> RunStatus:
    """A run of these tasks, of one if none is named."""
    return RunStatus("r-1", "r", state, tasks=list(tasks) or [task()], **fields)
