"""Where a job's variables would go: asked of the job's own runtime, in a process of its own."""

import json
import os
import subprocess
from typing import Any, Dict, List, Optional

from launch import network
from launch.errors import UsageError
from launch.plan import Plan
from launch.ship import PROJECT, JobCode

DESCRIBE_S = 300.0


def placement_of(plan: Plan, job: JobCode, python: str) -> List[Dict[str, Any]]:
    """What each ps would hold: bytes, bytes that a step reads, names of variables.

    Raises:
      UsageError: the job's code fails, or ``python`` has no TensorFlow.
    """
    chief = next(task for task in plan.tasks if task.chief)
    argv = [word.replace("{code}", str(job.folder)) for word in chief.argv]
    argv[:3] = [python, "-m", "jobs.describe"]
    paths = [str(PROJECT), *([str(job.folder)] if job.folder else [])]
    env = {
        **os.environ,
        "TF_CONFIG": plan.environment(chief)["TF_CONFIG"],
        "CUDA_VISIBLE_DEVICES": "",
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    env["PYTHONPATH"] = os.pathsep.join(paths)
    try:
        ran = subprocess.run(argv, env=env, capture_output=True, timeout=DESCRIBE_S)
    except subprocess.TimeoutExpired:
        raise UsageError(f"job: its graph was not built within {DESCRIBE_S:.0f} s") from None
    if ran.returncode != 0:
        complaint = ran.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(
            f"job: its graph cannot be built by {python}: {complaint[-1] if complaint else 'no reason given'}"
        )
    held: List[Dict[str, Any]] = json.loads(ran.stdout.decode().splitlines()[-1])["ps"]
    return held


def describe(plan: Plan, job: JobCode, python: str, nic_gbps: float) -> Dict[str, Optional[Any]]:
    """``placement`` and ``network`` of ``plan --json``; null where a program of others places its own."""
    if plan.spec.command is not None:
        return {"placement": None, "network": None}
    held = placement_of(plan, job, python)
    servers = [network.End(task.name, task.host) for task in plan.tasks if task.role == "ps"]
    workers = [network.End(task.name, task.host) for task in plan.tasks if task.role in ("chief", "worker")]
    placed = [{"task": end.task, "bytes": ps["bytes"], "variables": ps["variables"]} for end, ps in zip(servers, held)]
    return {"placement": placed, "network": network.describe(workers, servers, [ps["pulled"] for ps in held], nic_gbps)}
