"""A detached run by a stand-in for ``srun``, which kills all that a step's program leaves, as control groups do."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Dict

from launch.agent.linux.sockets import free_ports
from tests.support.launch.launcher import run_here
from tests.support.launch.machine import left_in, living_under
from tests.support.slurm.srun import job_with
from tests.support.waiting import eventually

ADDRESS = {"h1": "127.0.0.2", "h2": "127.0.0.3"}  # both are this machine


def write(folder: Path) -> str:
    """A hosts file whose tasks stay."""
    # Both hosts are this machine. The lead's agent listens above the ports of h1, which h2 must not use then.
    on_h2, ps, on_h1, _ = free_ports(4)
    places = (("h1", ps), ("h1", on_h1), ("h2", on_h2))
    entries = [{"host": name, "address": ADDRESS[name], "port": port} for name, port in places]
    keys: Dict[str, Any] = {
        "name": "r", "transport": "slurm", "command": ["sh", "-c", "echo up; exec sleep 1000"],
        "python": sys.executable, "workdir": str(folder / "w"), "restart": {"max": 0},
        "cluster": {"ps": entries[:1], "worker": entries[1:]},
    }  # fmt: skip
    (folder / "r.yaml").write_text(json.dumps(keys))
    return str(folder / "r.yaml")


def test_a_detached_run_outlives_its_launcher_and_is_ended_without_a_trace(tmp_path: Path) -> None:
    file, job = write(tmp_path), job_with(tmp_path)
    job["PATH"] = f"{job['PATH']}:{os.environ['PATH']}"
    up = run_here("up", "-d", file, **job)
    try:
        assert up.returncode == 0 and up.stdout.endswith("the run ends with Slurm's job 7 at the latest\n"), up.stderr
        status = json.loads(run_here("status", "--json", file, **job).stdout)
        assert [f"{task['host']} {task['state']}" for task in status["tasks"]] == ["h1 running"] * 2 + ["h2 running"]
    finally:
        down = run_here("down", file, **job)
    assert (
        down.returncode == 0
        and down.stdout.count("no process, port, GPU memory, lock, control group or container left") == 2
    ), down.stdout
    eventually("the end of all steps", lambda: not [*left_in(tmp_path), *living_under(tmp_path)])
