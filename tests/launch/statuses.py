"""Statuses of a run as the lead tells them."""

from typing import Any, Dict


def task(name: str = "worker:0@gpu01", state: str = "running", **fields: Any) -> Dict[str, Any]:
    """A task's entry in ``status --json``."""
    who, host = name.split("@")
    role, index = who.split(":")
    return {
        "role": role, "index": int(index), "host": host, "address": f"{host}:2222", "gpus": [], "state": state,
        "pid": 42, "exit_code": None, "restarts": 0, "step": None, "step_time_ms": None, "dropped_gradients": 0,
        "log": f"/w/runs/r-1/{role}.{index}/attempt_0.log", "cause": None, **fields,
    }  # fmt: skip


def status(*tasks: Dict[str, Any], state: str = "running", **fields: Any) -> Dict[str, Any]:
    """``status --json``"""
    return {
        "run": "r-1", "name": "r", "state": state, "global_step": None, "steps": None, "steps_per_second": 0.0,
        "examples_per_second": 0.0, "loss": None, "checkpoint_step": None, "evaluation": None, "cause": None,
        "metrics": {}, "replicas": {}, "checkpoint": None, "tasks": list(tasks) or [task()], **fields,
    }  # fmt: skip
