"""`launch plan` asks the job's own runtime where its variables go."""

import json
from pathlib import Path
from typing import Any

import pytest

from launch.agent.linux.sockets import free_ports
from tests.support.launch.launcher import run_here


def hosts_file(folder: Path, what: str) -> str:
    ps0, ps1, worker = free_ports(3)
    cluster = f"cluster: {{ps: ['cpu01:{ps0}', 'cpu02:{ps1}'], worker: ['gpu01:{worker}']}}\n"
    (folder / "hosts.yaml").write_text(f"{what}\n{cluster}")
    return str(folder / "hosts.yaml")


def test_a_plan_has_every_variable_on_one_ps_and_the_bytes_of_all_values(tmp_path: Path) -> None:
    ran = run_here("plan", hosts_file(tmp_path, "job: digits"), "--json", "--nic-gbps", "1")
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
    plan = json.loads(run_here("plan", hosts_file(tmp_path, "command: ['{python}', train.py]"), "--json").stdout)
    assert plan["placement"] is None and plan["network"] is None
    assert plan["remarks"] == [
        "command: the program places its variables itself; the launcher does not know their sizes"
    ]


def test_a_job_whose_graph_cannot_be_built_is_told_with_file_and_line_beside_its_tasks(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "def inputs(task, args):\n    raise ValueError('no data')\nmodel = optimizer = inputs\n"
    )
    ran = run_here("plan", hosts_file(tmp_path, "job: broken.py"))
    assert ran.returncode == 2
    assert "broken.py:2" in ran.stderr and "no data" in ran.stderr
    assert "worker:0" in ran.stdout


def test_a_job_finds_the_files_beside_it_wherever_the_plan_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise ValueError(open('data.csv').read())\n")
    (tmp_path / "data.csv").write_text("4711")
    ran = run_here("plan", hosts_file(tmp_path, "job: broken.py"))
    assert ran.returncode == 2 and "broken.py:1: ValueError: 4711" in ran.stderr


def test_a_python_without_tensorflow_shows_the_tasks_and_says_what_is_missing(tmp_path: Path) -> None:
    without = tmp_path / "python"
    without.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'tensorflow'\" >&2; exit 1\n")
    without.chmod(0o755)
    ran = run_here("plan", hosts_file(tmp_path, "job: digits"), "--python", str(without), "--json")
    plan = json.loads(ran.stdout)
    assert (ran.returncode, len(plan["tasks"]), plan["placement"]) == (0, 3, None)
    assert plan["remarks"] == [
        f"variables and network are not known: {without} has no TensorFlow to build the job's graph; "
        "name another Python of this machine with --python"
    ]


def test_a_python_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    ran = run_here("plan", hosts_file(tmp_path, "job: digits"), "--python", "/no/python")
    assert ran.returncode == 2
    assert ran.stderr.strip() == "--python: cannot run /no/python: No such file or directory"


def test_a_model_is_placed_with_its_towers_tables_and_what_more_ps_would_bring(tmp_path: Path) -> None:
    (tmp_path / "r.yaml").write_text("""
job: synthetic
args: {model: embedding, rows: 1000000, width: 16, lookups: 26}
cluster: {ps: [cpu01], worker: [{host: "gpu[1-4]", gpus: [0, 1]}]}
train: {batch_size: 8}
""")
    plan = json.loads(run_here("plan", str(tmp_path / "r.yaml"), "--json").stdout)
    rows = 2 * 8 * 26  # towers x batch x lookups
    assert plan["variables"]["tables"] == [
        {"name": "table", "rows": 1_000_000, "rows_per_step": rows, "bytes": 64_000_000, "bytes_per_step": 64 * rows}
    ]
    assert plan["variables"]["imbalance"] == 1.0
    assert plan["network"]["bound"] == {
        "host": "cpu01", "tasks": ["ps:0"], "direction": "out", "bytes": 4 * 64 * rows,
    }  # fmt: skip
    assert plan["network"]["balanced"]["ps"] == 4


def test_in_windows_a_step_has_its_part_of_an_exchange(tmp_path: Path) -> None:
    def network(local_steps: int) -> Any:
        train = f"{{mode: async, local_steps: {local_steps}}}"
        text = f"job: polynomial\nargs: {{optimizer: sgd}}\ntrain: {train}\ncluster: {{ps: [c1], worker: ['g[1-2]']}}"
        (tmp_path / "r.yaml").write_text(text)
        plan = json.loads(run_here("plan", str(tmp_path / "r.yaml"), "--json").stdout)
        return plan["network"], plan["remarks"]

    (each, _), (in_windows, remarks) = network(1), network(2)
    assert 2 * in_windows["bound"]["bytes"] == each["bound"]["bytes"] > 0
    assert 2 * in_windows["seconds_per_step"] == pytest.approx(each["seconds_per_step"])
    assert "train.local_steps: workers exchange once in 2 steps" in remarks[1]


@pytest.mark.parametrize(
    ("train", "modelled", "remark"),
    [
        ("{replication: in-graph}", False, "network: unknown for in-graph replication over several workers"),
        ("{mode: async}", True, "mode async: no worker waits for another"),
    ],
)
def test_where_a_step_is_another_thing_the_plan_says_so(
    tmp_path: Path, train: str, modelled: bool, remark: str
) -> None:
    text = f"job: polynomial\ntrain: {train}\ncluster: {{ps: [cpu01], worker: ['gpu[1-2]']}}"
    (tmp_path / "r.yaml").write_text(text)
    plan = json.loads(run_here("plan", str(tmp_path / "r.yaml"), "--json").stdout)
    assert plan["placement"] and (plan["network"] is not None) == modelled
    assert [each.split(":")[0] for each in plan["remarks"]] == [remark.split(":")[0]]
    assert plan["remarks"][0].startswith(remark)
