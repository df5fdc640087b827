"""What ``--json`` prints is, byte by byte, what it has always been: examples kept in ``json_examples/``."""

import io
import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from cluster.spec.model import Setup
from launch.environments.builder import as_values as setup_values
from launch.environments.builder import set_up
from launch.environments.identity import Order
from launch.hosts.bundle import JobCode
from launch.plan import estimate
from launch.plan.outlook import shown_tasks, write_json
from launch.teardown import as_values as down_values
from launch.teardown import look_and_take_down
from launch.verbs.sweep import as_values as sweep_values
from launch.verbs.sweep import look_for_leftovers
from launch.view.host_progress import HostProgress
from tests.launch.plan.plans import plan_of, read
from tests.support.launch.fakes import FakeChannel, FakeHost, fleet_of, spec_of
from tests.support.launch.leftovers import NOTHING

TRAIN = re.compile(r'"--train", "(?:[^"\\]|\\.)*"')  # whose keys grow in number
JOB_DIR = re.compile(r'(?<="LAUNCH_JOB_DIR": ")[^"]*')  # of this checkout, or of the test
EXAMPLES = Path(__file__).parent / "json_examples"
JOB = """
job: digits
workdir: /w
secrets: [KEY]
cluster: {ps: ["cpu[01-02]"], worker: [{host: "gpu[01-02]", port: 2300, gpus: [0, 1]}, {host: gpu03, gpus: all}]}
"""
COMMAND = "command: ['{python}', train.py, '--gpus={gpus}']\nworkdir: /w\ncluster: {ps: [h], worker: [h, h]}\n"
DESCRIBED = {
    "ps": [
        {"bytes": 3000, "pulled": 1000, "variables": ["a/weights", "global_step"]},
        {"bytes": 2000, "pulled": 900, "variables": ["b"]},
    ],
    "tables": [{"name": "t", "rows": 1000, "rows_per_step": 26, "bytes": 64000, "bytes_per_step": 1664}],
    "fewest": {"ps": 1, "pulled": 1900},
    "overlapped": True,
}  # fmt: skip
PROCESS = {"pid": 7, "group": 7, "start": 107, "argv": "python train.py", "waits_in": None}
HUNG = {"pid": 8, "group": 7, "start": 108, "argv": "launch agent", "waits_in": "nfs_wait"}
THERE = {
    "run": "r-1", "processes": [PROCESS, HUNG], "ports": [2222, 2300], "gpu_memory": [
        {"gpu": 0, "pid": 7, "mib": 1536}, {"gpu": 1, "pid": 8, "mib": None},
    ], "locks": ["/w/locks/r@a.lock"], "groups": [], "containers": [],
}  # fmt: skip
LEFT = {"run": "r-1", **NOTHING, "processes": [HUNG]}
KNOWN = {
    "run": "r-1",
    "generation": 1,
    "lives": True,
    "lead": "a",
    "hosts": ["a", "b", "z"],
    "highest": 1,
    "taken": False,
}
NEVER = {"run": None, "highest": 0, "taken": False}
STRAY = {"run": None, **NOTHING, "folders": ["/w/code/.half"]}


def host(name: str, *answers: Any) -> FakeHost:
    return FakeHost(name, *(FakeChannel(line({"missing": []}), line(answer)) for answer in answers))


def line(values: Any) -> bytes:
    return json.dumps(values).encode() + b"\n"


def of_plan(text: str) -> Callable[[Path, pytest.MonkeyPatch], str]:
    def printed(folder: Path, patch: pytest.MonkeyPatch) -> str:
        done = subprocess.CompletedProcess([], 0, line(DESCRIBED), b"")
        patch.setattr(subprocess, "run", lambda *arguments, **options: done)
        planned = plan_of(read(folder, text))
        values, mistake = estimate.outlook(planned, JobCode(None, "digits"), "python", 10.0)
        assert mistake is None
        written: List[str] = []
        write_json(values, shown_tasks(planned, {task.name for task in planned.tasks}), written.append)
        return JOB_DIR.sub("(folder)", TRAIN.sub('"--train", "(settings)"', "".join(written)))

    return printed


def of_down(folder: Path, patch: pytest.MonkeyPatch) -> str:
    """Of a host where a process is left, one without a run, one out of reach, and one that FILE has lost."""
    hosts = {
        "a": host("a", KNOWN, THERE, {**LEFT, "after": "`rm x`: exit code 1"}),
        "b": host("b", NEVER, {"run": None, **NOTHING}, {"run": None, **NOTHING, "after": None}),
        "c": host("c"),
    }
    with fleet_of(hosts) as fleet:
        return json.dumps(down_values(look_and_take_down(fleet, "launch down")))


def of_sweep(folder: Path, patch: pytest.MonkeyPatch) -> str:
    found = [{**THERE, "folders": []}, STRAY]
    swept = {"running": [{"run": "r-2", "pid": 42}], "found": found, "left": [{**LEFT, "folders": []}]}
    hosts = {"a": host("a", swept), "b": host("b", {"running": [], "found": [], "left": []}), "c": host("c")}
    with fleet_of(hosts) as fleet:
        return json.dumps(sweep_values(look_for_leftovers(fleet, kill=True)))


def of_setup(folder: Path, patch: pytest.MonkeyPatch) -> str:
    (folder / "my.lock").write_text("tiny==1.0 --hash=sha256:" + "0" * 64 + "\n")
    spec = replace(spec_of(), path=folder / "r.yaml", setup=Setup("my.lock"))
    order = Order(spec, dict.fromkeys(["a", "b", "c"], "python3.7"))
    hosts = {
        "a": host("a", {"done": "built"}),
        "b": host("b", {"done": "up to date"}),
        "c": host("c", {"error": "full"}),
    }
    with fleet_of(hosts) as fleet, HostProgress(list(hosts), io.StringIO()) as progress:
        return json.dumps(setup_values(order, set_up(fleet, order, progress)))


PRINTED: Dict[str, Callable[[Path, pytest.MonkeyPatch], str]] = {
    "plan_of_a_job": of_plan(JOB),
    "plan_of_one_host": of_plan("job: digits\nworkdir: /w\ncluster: {ps: [h], worker: [h]}\n"),
    "plan_of_a_command": of_plan(COMMAND),
    "down": of_down,
    "sweep": of_sweep,
    "setup": of_setup,
}


@pytest.mark.parametrize("example", PRINTED)
def test_what_is_printed_is_what_was_printed_before(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = (EXAMPLES / f"{example}.json").read_text()
    assert PRINTED[example](tmp_path, monkeypatch).rstrip() == kept.rstrip()
