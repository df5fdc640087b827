"""``launch verify`` with processes of its own: what it says, its exit code, and what it leaves."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from launch.agent.linux.sockets import free_ports
from tests.support import ROOT

JOB = ROOT / "tests" / "support" / "training" / "jobs" / "verified.py"
# Worker 1 ends in the middle of its third batch; the chief, which reads the same batches, does not.
DIES = f"""
import json, os, sys
import tensorflow.compat.v1 as tf
sys.path.insert(0, {str(ROOT)!r})
from tests.support.training.jobs import verified
from tests.support.training.jobs.verified import model, optimizer

def inputs(task, args):
    batches = []
    own = json.loads(os.environ["TF_CONFIG"])["task"]["index"] == task.index == 1

    def die(y):
        batches.append(y)
        if own and len(batches) == 6:
            os._exit(3)
        return y

    def through(batch):
        y = tf.numpy_function(die, [batch["y"]], tf.float32)
        y.set_shape(batch["y"].shape)
        return {{**batch, "y": y}}

    return verified.inputs(task, args).map(through)
"""


def verified(folder: Path, job: Path, *arguments: str) -> Any:
    """Runs the verb to its end, on this machine."""
    ps, *workers = [f"localhost:{port}" for port in free_ports(3)]
    (folder / "hosts.yaml").write_text(
        f"job: {job}\ncluster: {{ps: ['{ps}'], worker: {workers}}}\ntrain: {{steps: 12, batch_size: 8}}\n"
        f"args: {{optimizer: adam}}\nworkdir: {folder}/w\n"
    )
    argv = [sys.executable, "-m", "launch", "verify", str(folder / "hosts.yaml"), *arguments]
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=str(ROOT), timeout=120)


def test_a_run_that_is_equal_says_so_and_leaves_no_checkpoint(tmp_path: Path) -> None:
    ran = verified(tmp_path, JOB, "--local", "--steps", "30")
    assert ran.returncode == 0, ran.stdout
    last = ran.stdout.splitlines()[-1]
    assert last.endswith(" equals one process bit by bit in 12 steps: 4 variables and 11 of the optimizer, 2 workers")
    assert list(tmp_path.glob("w/runs/*/checkpoint/*")) == []


def test_a_worker_that_dies_fails_the_verification_and_is_not_started_again(tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text(DIES)
    ran = verified(tmp_path, tmp_path / "dies.py")
    assert ran.returncode == 1, ran.stdout
    assert " failed: worker:1@localhost: exit code 3" in ran.stdout.splitlines()[-1]
    assert len(list(tmp_path.glob("w/runs/*/worker.1/attempt_*.log"))) == 1
