"""Runs on a real Slurm: batch jobs whose launchers reach two nodes by ``srun``."""

import json
import sys
from typing import Any, Dict, Iterator

import pytest

from tests.support import ROOT
from tests.support.slurm.cluster import Job, Slurm, must
from tests.support.slurm.fixture import slurm_here
from tests.support.waiting import eventually

FILE = "/root/r.yaml"
LAUNCH = f"cd {ROOT} && exec {sys.executable} -m launch"
TALK = "echo {role}:{index} on $(hostname) has $TOKEN and $MODULE; test {role} = worker || exec sleep 1000"
STAY = "echo up; exec sleep 1000"


@pytest.fixture(scope="module")
def nodes() -> Iterator[Slurm]:
    """Two nodes, for all tests."""
    with slurm_here(2) as slurm:
        yield slurm


@pytest.fixture
def slurm(nodes: Slurm) -> Iterator[Slurm]:
    """Two nodes without jobs."""
    yield nodes
    nodes.cancel_all()


def write(slurm: Slurm, script: str) -> None:
    """A hosts file on the first node, whose tasks run a shell script."""
    keys = {
        "name": "r", "transport": "slurm", "command": ["sh", "-c", script], "python": sys.executable,
        "cluster": {"ps": ["h1"], "worker": ["h1", "h2"]}, "secrets": ["TOKEN"], "restart": {"max": 0},
    }  # fmt: skip
    slurm.control.write(FILE, json.dumps(keys))


def outside(slurm: Slurm, job: Job, verb: str, *arguments: str) -> str:
    """What a verb prints to somebody on the first node who is not in the job."""
    line = f"{LAUNCH} {verb} {FILE} {' '.join(arguments)}"
    return must(slurm.control, ["env", f"SLURM_JOB_ID={job.number}", "TOKEN=", "sh", "-c", line])


def status(slurm: Slurm, job: Job) -> Dict[str, Any]:
    found: Dict[str, Any] = json.loads(outside(slurm, job, "status", "--json"))
    return found


def test_a_run_in_a_batch_job_has_its_environment_and_ends_with_no_step_left(slurm: Slurm) -> None:
    write(slurm, TALK)
    job = slurm.submit(f"export TOKEN=hunter2222 MODULE=cuda\n({LAUNCH} up {FILE}) && {LAUNCH} logs {FILE}")
    assert job.ended() == "COMPLETED", job.output()
    said = "has (secret) and cuda"  # what the tasks print of a secret is masked, where it has reached them
    assert sorted(line for line in job.output().splitlines() if "@" in line) == [
        f"ps:0@h1 ps:0 on h1 {said}",
        f"worker:0@h1 worker:0 on h1 {said}",
        f"worker:1@h2 worker:1 on h2 {said}",
    ]
    eventually("the end of all steps", lambda: not slurm.steps())


def test_a_run_outlives_its_launcher_in_the_job_and_is_seen_and_ended_from_outside(slurm: Slurm) -> None:
    write(slurm, STAY)
    job = slurm.submit(f"export TOKEN=hunter2222\n({LAUNCH} up -d {FILE}); sleep 1000")
    eventually("the end of launch up -d", lambda: f"the run ends with Slurm's job {job.number}" in job.output())
    eventually("the end of the launcher's own steps", lambda: len(slurm.steps()) == 2)
    assert [task["state"] for task in status(slurm, job)["tasks"]] == ["running"] * 3
    for host in slurm.hosts:
        environments = host.run(["sh", "-c", "cat /proc/$(pgrep -o -f '^launch agent')/environ"]).stdout
        assert f"SLURM_JOB_ID={job.number}" in environments and "hunter2222" not in environments
    down = outside(slurm, job, "down")
    assert down.count("no process, port, GPU memory, lock, control group or container left") == 2
    eventually("the end of all steps", lambda: not slurm.steps())


def test_the_notice_before_a_time_limit_stops_a_run_in_order(slurm: Slurm) -> None:
    write(slurm, STAY)
    job = slurm.submit(f"export TOKEN=hunter2222\n{LAUNCH} up {FILE}")  # the launcher in the place of the batch shell
    eventually("a run", lambda: "running: 3 running" in job.output())
    must(slurm.control, ["scancel", "--batch", "--signal=TERM", job.number])  # as --signal=B:TERM@60 does
    assert job.ended() == "FAILED" and job.field("ExitCode") == "143:0", job.output()
    assert job.output().splitlines()[-1].endswith(" stopped: SIGTERM to launch up")
    eventually("the end of all steps", lambda: not slurm.steps())
