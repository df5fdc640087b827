"""What this host's GPUs are doing: asked of the driver, and of the runs that booked them."""

import subprocess
from typing import Any, Dict, List, Optional, Sequence

from launch.agent.booking import who_holds
from launch.agent.processes import command_line

ANSWER_S = 20.0


def driver_and_gpus() -> Dict[str, Any]:
    """{"driver": version or None, "gpus": […]}; each GPU, by index, as ``_gpu`` tells it."""
    rows = _query("--query-gpu=driver_version,uuid,name")
    users = _query("--query-compute-apps=gpu_uuid,pid,used_memory")
    return {"driver": rows[0][0] if rows else None, "gpus": [_gpu(row, users) for row in rows]}


def _gpu(row: Sequence[str], users: Sequence[Sequence[str]]) -> Dict[str, Any]:
    """{"uuid", "name", "booked": by whom or None, "processes": ["pid 42 (python train.py), 9000 MiB"]}"""
    _, uuid, name = row
    processes = [f"pid {pid} ({command_line(int(pid))[:80]}), {mib} MiB" for gpu, pid, mib in users if gpu == uuid]
    return {"uuid": uuid, "name": name, "booked": who_holds(uuid), "processes": processes}


def _query(question: str) -> List[List[str]]:
    """The rows of nvidia-smi's answer; none where there is no driver."""
    answer = _output(["nvidia-smi", question, "--format=csv,noheader,nounits"])
    return [[cell.strip() for cell in line.split(",")] for line in (answer or "").splitlines() if line.count(",") == 2]


def _output(argv: Sequence[str]) -> Optional[str]:
    try:
        done = subprocess.run(list(argv), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=ANSWER_S)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
