"""Programs that know nothing of this launcher keep their checkpoints in a relative folder, and one worker is killed."""

import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any, Dict, List

import pytest

from tests.support.launch.launcher import Launcher
from tests.support.nightly import few

PROGRAMS = Path(__file__).parent / "programs"
FLAGS = ["--job_name={role}", "--task_index={index}", "--ps_hosts={ps_hosts}", "--worker_hosts={worker_hosts}"]
IS_1_X = importlib.util.find_spec("tensorflow_core") is not None  # loading TensorFlow would cost each process of pytest
on_1_x = pytest.mark.skipif(not IS_1_X, reason="contrib is gone from TensorFlow 2.x")


def run(launch: Launcher, program: str, roles: Dict[str, int], *flags: str, **keys: Any) -> Any:
    """A whole run of a program of this folder, with ``--local``."""
    shutil.copy(str(PROGRAMS / f"{program}.py"), str(launch.file.parent / "train.py"))
    cluster = {role: [{"host": "localhost", "count": count}] for role, count in roles.items()}
    restart = {"max": 2, "backoff_s": 0.1}
    launch.write(command=["{python}", "train.py", *flags], cluster=cluster, restart=restart, **keys)
    return launch("up", "--local")


def begins(launch: Launcher, task: str) -> List[str]:
    """The lines of a task's attempts about their beginnings."""
    logs = [launch.log(task, attempt) for attempt in range(3)]
    return [line for log in logs for line in log.splitlines() if line.startswith("begins at")]


@pytest.mark.parametrize(
    ("program", "workers", "saved"),
    few(
        [("monitored", 2, "logdir/checkpoint"), ("supervised", 1, "train_logs/checkpoint")],
        [("monitored", 2, "logdir/checkpoint")],
    ),
)
def test_a_killed_chief_of_a_program_with_ps_continues_from_its_relative_folder(
    program: str, workers: int, saved: str, launch: Launcher
) -> None:
    ran = run(launch, program, {"ps": 1, "worker": workers}, *FLAGS, leave_s=0)
    assert ran.returncode == 0, ran.stdout
    first, second = begins(launch, "worker:0")
    assert first == "begins at 0" and int(second.split()[-1]) >= 20
    (work,) = launch.run_folder().glob("hosts/*/work")
    assert (work / saved).is_file()


def test_ranks_resume_together_from_one_relative_checkpoint(launch: Launcher) -> None:
    ran = run(launch, "ranks", {"worker": 3})
    assert ran.returncode == 0, ran.stdout
    for index in range(3):
        found = begins(launch, f"worker:{index}")
        assert (found[0], found[-1]) == (f"begins at 0 local rank {index}", f"begins at 3 local rank {index}")


@pytest.mark.nightly
@on_1_x
def test_contrib_s_experiment_trains_with_a_chief_that_is_called_master(launch: Launcher) -> None:
    ran = run(launch, "experiment", {"ps": 1, "master": 1, "worker": 1}, leave_s=0)
    assert ran.returncode == 0, ran.stdout
    (work,) = launch.run_folder().glob("hosts/*/work")
    assert "model.ckpt-3" in (work / "out" / "checkpoint").read_text()
    config = json.loads(launch("plan", "--local", "--json").stdout)["tasks"][1]["env"]["TF_CONFIG"]
    assert json.loads(config)["task"] == {"type": "master", "index": 0}
