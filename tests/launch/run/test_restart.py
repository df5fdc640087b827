"""Tasks are started anew in place: what comes of it is told, and training goes on with every contribution counted."""

import re
import textwrap
from dataclasses import replace
from typing import Any, Dict, List

import pytest

from launch.status.run import RunStatus
from launch.verbs.task_changes import follow, losses, refusals, restarted
from tests.support.launch.launcher import Launcher
from tests.support.launch.statuses import status, task
from tests.support.waiting import eventually

# -- what a status says of it


def test_a_task_is_up_again_when_its_next_attempt_runs() -> None:
    before = status(task("worker:0@a"), task("worker:1@b", restarts=2))
    now = status(task("worker:0@a", restarts=1, state="starting"), task("worker:1@b", restarts=3))
    assert restarted(before, now, ["worker:0", "worker:1"]) == (["worker:1 is up again"], ["worker:0"], [])


def test_a_task_that_failed_instead_is_told_with_its_cause() -> None:
    now = status(task("worker:0@a", restarts=1, state="failed", cause="exit code 3"))
    assert restarted(status(task("worker:0@a")), now, ["worker:0"]).problems == ["worker:0@a failed: exit code 3"]


def test_a_run_that_is_over_or_another_by_now_is_told() -> None:
    before = status(task("worker:0@a"))
    over = status(task("worker:0@a", state="stopped"), state="stopped", cause="launch down")
    assert restarted(before, over, ["worker:0"]).problems == ["worker:0@a stopped: launch down"]
    other = replace(status(task("worker:0@a")), run="r-2")
    assert restarted(before, other, ["worker:0"]).problems == ["r-1 is over, and r-2 has started since"]


def test_an_evaluator_that_had_failed_before_is_waited_for() -> None:
    before = status(task("evaluator:0@a", state="failed"))
    assert restarted(before, before, ["evaluator:0"]).pending == ["evaluator:0"]


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (status(state="succeeded"), "r-1 has succeeded; start it with `launch up --local a.yaml`"),
        (status(task("worker:1@a")), "worker:0: expected a task of r-1, found none of this name"),
        (status(task("worker:0@a", state="lost")), "worker:0@a: expected a task that runs, found it lost"),
    ],
)
def test_what_cannot_be_started_anew_is_refused_with_the_reason(now: RunStatus, reason: str) -> None:
    assert refusals(now, ["worker:0"], "--local a.yaml") == [reason]


def test_a_task_that_does_not_come_up_in_time_is_named() -> None:
    waits: List[int] = []
    now = status(task("worker:0@a", state="starting", restarts=1))
    before = status(task("worker:0@a"))
    found = follow(lambda: restarted(before, now, ["worker:0"]), -1.0, lambda: waits.append(1), "is not up again")
    assert found == ([], [], ["worker:0 is not up again"]) and waits == []


@pytest.mark.parametrize(
    ("fields", "names", "told"),
    [
        ({"steps": 100}, ["worker:0"], []),
        ({"steps": None}, ["ps:0"], []),
        ({"steps": 100, "checkpoint_step": 20}, ["worker:0", "ps:0"], ["from step 30 to the checkpoint of step 20"]),
        ({"steps": 100}, ["ps:0"], ["from step 30 to step 0, because there is no checkpoint yet"]),
    ],
    ids=["a worker", "a command's ps", "a ps", "a ps before the first checkpoint"],
)
def test_what_training_loses_with_a_ps_is_told(fields: Dict[str, Any], names: List[str], told: List[str]) -> None:
    now = status(task("ps:0@cpu01"), task(), global_step=30, **fields)
    assert losses(now, names) == [f"a ps loses its variables: training goes back {text}" for text in told]


# -- programs, really


def test_a_program_is_started_anew_and_the_others_are_left_alone(launch: Launcher) -> None:
    launch.stay()
    assert launch("up", "-d").returncode == 0
    before = {(t["role"], t["index"]): t["pid"] for t in launch.status()["tasks"]}
    ran = launch("restart", "worker:1")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "worker:1 is up again\n", "")
    after = launch.status()["tasks"]
    assert [t["restarts"] for t in after] == [0, 0, 1] and after[2]["pid"] != before["worker", 1]
    assert [t["pid"] for t in after[:2]] == [before["ps", 0], before["worker", 0]]
    assert launch.order.read_text() == "worker:1\n"
    assert launch("down").returncode == 0


def test_without_a_run_there_is_nothing_to_start_anew(launch: Launcher) -> None:
    launch.stay()
    ran = launch("restart", "worker:1")
    assert ran.returncode == 2 and "no run of this name has been on localhost" in ran.stderr


# -- training, really

SLOW_JOB = """
    import time
    import tensorflow.compat.v1 as tf

    def inputs(task, args):
        def slow(x):
            time.sleep(0.05 if task.worker_index == 1 else 0.0)
            return x
        x = tf.data.Dataset.range(8).repeat().map(lambda i: tf.cast(i, tf.float32))
        x = x.batch(task.batch_size, drop_remainder=True)
        def named(x):
            x = tf.numpy_function(slow, [x], tf.float32)
            x.set_shape([task.batch_size])
            return {"x": x}
        return x.map(named)

    def model(x):
        w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
        return tf.square(w - x)

    def optimizer(args):
        return tf.train.GradientDescentOptimizer(0.001)
"""


def test_a_slow_worker_is_marked_and_one_that_is_restarted_has_given_its_gradient_to_every_step(
    launch: Launcher,
) -> None:
    job = launch.folder / "project" / "slow.py"
    job.write_text(textwrap.dedent(SLOW_JOB))
    launch.write(command=None, job="slow.py", train={"steps": 250, "batch_size": 4, "towers": 1})
    assert launch("up", "-d").returncode == 0
    eventually("worker:1 is marked", lambda: launch.status()["tasks"][2]["straggler"])
    seen = launch.status()
    assert not seen["tasks"][1]["straggler"]
    assert seen["tasks"][1]["wait_ms"] > seen["tasks"][2]["wait_ms"]
    assert seen["waiting_share"] > 0
    assert "slow: worker:1@localhost" in launch("status").stdout

    ran = launch("restart", "worker:1")
    assert (ran.returncode, ran.stdout) == (0, "worker:1 is up again\n"), ran.stderr
    eventually("the end of training", lambda: launch.status()["state"] == "succeeded")
    assert [t["restarts"] for t in launch.status()["tasks"]] == [0, 0, 1]
    joined = [int(step) for step in re.findall(r"joined at step (\d+)", launch.log("worker:1", attempt=1))]
    assert len(joined) == 1 and 0 < joined[0] < 250
    assert "gradients given by each worker: 250 250\n" in launch.log("worker:0")
    eventually("nothing left", lambda: not launch.left())
