"""Ctrl-C on a run that trains: the checkpoint is of the last step that was taken, and training goes on from there."""

import re
import shutil
import signal
from typing import Any, Dict

import pytest

from tests.support import ROOT
from tests.support.launch.launcher import Launcher, finish
from tests.support.waiting import PATIENCE_S, eventually

COUNTED = ROOT / "tests" / "support" / "training" / "jobs" / "counted.py"
MORE = 20  # steps of the run that goes on


def interrupted(launch: Launcher, mode: str) -> Dict[str, Any]:
    """The last status of a run that Ctrl-C ended; its workers have noted each gradient."""
    shutil.copy(str(COUNTED), str(launch.file.parent))
    (launch.folder / "notes").mkdir()
    args = {"rows": mode == "async", "notes": str(launch.folder / "notes")}
    # More steps than it takes: where a run ends by itself, its chief computes a gradient more, for the last loss.
    train = {"batch_size": 2, "mode": mode, "steps": 1_000_000}
    launch.write(command=None, restart=None, job="counted.py", args=args, train=train)
    process = launch.begin("up")
    try:
        eventually("steps", lambda: ((launch.status() or {}).get("global_step") or 0) > 20, PATIENCE_S)
    finally:
        process.send_signal(signal.SIGINT)
        ran = finish(process)
    assert ran.returncode == 128 + signal.SIGINT, ran.stdout + ran.stderr
    return launch.status()


def computed(launch: Launcher, *workers: str) -> int:
    """How many gradients these have computed."""
    return sum((launch.folder / "notes" / name).stat().st_size for name in workers)


def late(launch: Launcher) -> int:
    """How many workers took longer than a stop waits for, and may have computed one gradient more."""
    named = re.findall(r"saving while workers with index (.*) take a step", launch.log("worker:0"))
    return len(",".join(named).split(",")) if named else 0


def logs(launch: Launcher) -> str:
    return "\n".join(launch.log(task) for task in ("worker:0", "worker:1"))


@pytest.mark.nightly
def test_no_synchronous_step_begins_after_the_checkpoint_of_a_stop(launch: Launcher) -> None:
    status = interrupted(launch, "sync")
    # Another worker computes its part of the next step, which nobody applies.
    assert status["global_step"] == status["checkpoint_step"] == computed(launch, "worker.0")


def test_asynchronous_workers_have_ended_their_steps_when_a_stop_saves_and_training_goes_on_from_there(
    launch: Launcher,
) -> None:
    status = interrupted(launch, "async")
    saved = status["checkpoint_step"]
    assert status["global_step"] == saved
    assert 0 <= computed(launch, "worker.0", "worker.1") - saved <= late(launch), logs(launch)
    ran = launch("up", "--resume", "--set", f"train.steps={saved + MORE}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    ended = launch.status()
    assert (ended["state"], ended["lost_steps"]) == ("succeeded", 0)
    assert ended["history"]["step"][: len(status["history"]["step"]) - 1] == status["history"]["step"][:-1]
    assert ended["history"]["step"][-1] > saved
    from tests.support.training.jobs import counted  # here, because it loads TensorFlow

    assert set(counted.counts(ended["checkpoint"]).values()) == {ended["global_step"]}
