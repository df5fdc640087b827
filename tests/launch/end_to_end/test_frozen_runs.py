"""A task of a real run freezes: it is named with its place in the code, started again, and training goes on."""

import os
import signal
from typing import Any, Dict, List

import pytest

from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

PATIENCE_S = 240.0
JOB = """
import os
import time

import numpy as np
import tensorflow.compat.v1 as tf


def loop():
    while True:  # in Python's own code: a stack has its line
        time.sleep(0.01)


def inputs(task, args):
    hangs = args["hangs"] and task.name == "worker:1" and os.environ["LAUNCH_ATTEMPT"] == "0"

    def batches():
        for batch in range(1 << 40):
            if batch == 5 and hangs:
                loop()
            time.sleep(0.1)  # what looks at the run needs the processor, too
            yield np.ones([task.batch_size, 4], np.float32)

    data = tf.data.Dataset.from_generator(batches, tf.float32, [task.batch_size, 4])
    return data.map(lambda x: {"x": x})


def model(x):
    return tf.square(tf.reduce_sum(x * tf.get_variable("w", [4]), 1) - 1)


def optimizer(args):
    return tf.train.GradientDescentOptimizer(0.01)
"""


@pytest.fixture
def begin(launch: Launcher) -> Any:
    """Starts a run of two workers that goes on until it is ended."""

    def start(hangs: bool) -> Launcher:
        (launch.file.parent / "stuck.py").write_text(JOB)
        settings = {"steps": 1 << 40, "batch_size": 4, "towers": 1, "checkpoint": {"every_s": 1}}
        launch.write(
            command=None, job="stuck.py", args={"hangs": hangs}, train=settings,
            restart={"max": 5, "backoff_s": 0, "frozen_s": 6},
        )  # fmt: skip
        assert launch("up", "-d").returncode == 0
        return launch

    yield start
    launch.end()


def incidents(launch: Launcher) -> List[Dict[str, Any]]:
    found: List[Dict[str, Any]] = launch.status()["incidents"]
    return found


def of(launch: Launcher, role: str, index: int) -> List[Dict[str, Any]]:
    """The incidents of one task in which it was frozen."""
    return [
        each for each in incidents(launch) if (each["kind"], each["role"], each["index"]) == ("frozen", role, index)
    ]


def goes_on(launch: Launcher) -> None:
    """Training takes a step that is newer than any before, and nobody is missing."""
    eventually("the end of every incident", lambda: not any(each["open"] for each in incidents(launch)), PATIENCE_S)
    before = launch.status()["global_step"]
    eventually("a newer step", lambda: launch.status()["global_step"] > before, PATIENCE_S)


def test_a_worker_whose_inputs_hang_is_named_with_the_line_and_then_a_ps_that_is_stopped(begin: Any) -> None:
    launch = begin(hangs=True)
    eventually("an incident", lambda: of(launch, "worker", 1), PATIENCE_S)
    goes_on(launch)
    incident = of(launch, "worker", 1)[0]
    assert incident["cause"].startswith("frozen: ") and incident["cause"].endswith(" (loop)")
    assert 'stuck.py", line' in incident["stack"]
    is_named_when_stopped(launch, "ps", 0)


@pytest.mark.nightly
def test_a_chief_that_is_stopped_is_named_too(begin: Any) -> None:
    launch = begin(hangs=False)
    goes_on(launch)
    is_named_when_stopped(launch, "worker", 0)


def is_named_when_stopped(launch: Launcher, role: str, index: int) -> None:
    (task,) = [each for each in launch.status()["tasks"] if (each["role"], each["index"]) == (role, index)]
    os.kill(task["pid"], signal.SIGSTOP)
    eventually("an incident", lambda: of(launch, role, index), PATIENCE_S)
    assert of(launch, role, index)[0]["cause"].startswith("frozen: stopped by a signal for ")
    goes_on(launch)
