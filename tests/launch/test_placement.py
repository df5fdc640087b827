"""`launch plan` asks the job's own runtime where its variables go."""

import json
import subprocess
import sys
from pathlib import Path

from launch.agent.ports import free_ports


def launch(*arguments: str) -> "subprocess.CompletedProcess[str]":
    argv = [sys.executable, "-m", "launch", *arguments]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120)


def hosts_file(folder: Path, what: str) -> str:
    ps0, ps1, worker = free_ports(3)
    cluster = f"cluster: {{ps: ['cpu01:{ps0}', 'cpu02:{ps1}'], worker: ['gpu01:{worker}']}}\n"
    (folder / "hosts.yaml").write_text(f"{what}\n{cluster}")
    return str(folder / "hosts.yaml")


def test_a_plan_has_every_variable_on_one_ps_and_the_bytes_of_all_values(tmp_path: Path) -> None:
    ran = launch("plan", hosts_file(tmp_path, "job: digits"), "--json", "--nic-gbps", "1")
    assert ran.returncode == 0, ran.stderr
    plan = json.loads(ran.stdout)
    names = [name for ps in plan["placement"] for name in ps["variables"]]
    assert len(names) == len(set(names))
    assert {"conv1/weights", "output/bias/Adam", "global_step"} <= set(names)
    # digits: 22,602 trained values, three times with Adam's slots; its two powers; the global step
    assert sum(ps["bytes"] for ps in plan["placement"]) == 4 * (3 * 22_602 + 2) + 8
    held = [ps["bytes"] for ps in plan["placement"]]
    assert max(held) < 1.6 * sum(held) / 2  # one layer has three quarters of the bytes
    worker = next(task for task in plan["network"]["tasks"] if task["task"] == "worker:0")
    assert worker["bytes_in"] == worker["bytes_out"] == 4 * 22_602
    assert plan["network"]["seconds_per_step"] > 0


def test_a_program_of_others_places_its_own_variables(tmp_path: Path) -> None:
    plan = json.loads(launch("plan", hosts_file(tmp_path, "command: ['{python}', train.py]"), "--json").stdout)
    assert plan["placement"] is None and plan["network"] is None


def test_a_job_whose_graph_cannot_be_built_is_refused_with_file_and_line(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "def inputs(task, args):\n    raise ValueError('no data')\nmodel = optimizer = inputs\n"
    )
    ran = launch("plan", hosts_file(tmp_path, "job: broken.py"))
    assert ran.returncode == 2
    assert "broken.py:2" in ran.stderr and "no data" in ran.stderr
