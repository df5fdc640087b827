"""The entry of a task process: what it refuses, what it writes, how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict

import pytest

from cluster.protocol.outcome import Outcome
from tests.support import ROOT
from tests.support.training.processes import Cluster
from tests.support.waiting import PATIENCE_S, eventually

MODEL = "def model(x):\n    return tf.get_variable('w', [1]) * x\n"
OPTIMIZER = "def optimizer(args):\n    return tf.train.GradientDescentOptimizer(0.1)\n"
INPUTS = (
    "def inputs(task, args):\n    return tf.data.Dataset.from_tensors({'x': tf.zeros([task.batch_size])}).repeat()\n"
)


def failed(folder: Path, job: str, train: Dict[str, Any], role: str = "worker", **cluster: int) -> Outcome:
    """The outcome of a single task that must fail before it needs any other."""
    with Cluster(folder, job, **cluster) as run:
        run.start(role, 0, train)
        assert run.exit_code(role, 0) == 1
        outcome = run.outcome(role, 0)
        assert outcome is not None and not outcome.succeeded and not outcome.retry
        assert str(outcome.cause) in run.log(role, 0)
        return outcome


def written(folder: Path, *parts: str) -> str:
    path = folder / "mine.py"
    path.write_text("import tensorflow.compat.v1 as tf\n" + "".join(parts))
    return str(path)


def test_a_mistake_in_the_job_is_told_with_its_file_and_is_not_retried(tmp_path: Path) -> None:
    job = written(tmp_path, INPUTS, OPTIMIZER, "def model(x):\n    y = x\n    return missing(y)\n")
    outcome = failed(tmp_path, job, {"batch_size": 4, "towers": 2})
    assert str(outcome.cause).startswith(f"{job}:8: NameError: name 'missing'")


def test_a_cluster_without_parameter_servers_is_refused(tmp_path: Path) -> None:
    assert "expected at least one ps" in str(failed(tmp_path, "digits", {}, ps=0).cause)


@pytest.mark.parametrize(
    ("train", "told"),
    [
        ({"mode": "async", "sync": "stock"}, "train.sync: expected overlapped in mode async, found stock"),
        ({"mode": "async", "sync": "plain"}, "train.sync: expected overlapped in mode async, found plain"),
        ({"sync": "stock", "wire": "float16"}, "train.wire: expected float32 with sync stock, found float16"),
        ({"sync": "stock", "clip_norm": 1.0}, "train.clip_norm: expected null with sync stock, found 1.0"),
        ({"sync": "stock", "accumulate": 2}, "train.accumulate: expected 1 with sync stock, found 2"),
        (
            {"sync": "stock", "replication": "in-graph"},
            "train.replication: expected between-graph with sync stock, found in-graph",
        ),
        ({"accumulate": 0}, "train.accumulate: expected at least 1, found 0"),
        ({"mode": "async", "local_steps": 0}, "train.local_steps: expected at least 1, found 0"),
        ({"local_steps": 4}, "train.local_steps: expected 1 in mode sync, found 4"),
        ({"best": {"patience": 3}}, "train.best: expected either max or min, found both or neither"),
        ({"best": {"max": "auc", "min": "loss"}}, "train.best: expected either max or min, found both or neither"),
        ({"sync": "stock", "best": {"max": "auc", "patience": 3}}, "train.best.patience: expected null with"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_of_a_task_started_by_hand(
    tmp_path: Path, train: Dict[str, Any], told: str
) -> None:
    assert str(failed(tmp_path, "digits", train).cause).startswith(told)


def test_settings_that_are_no_json_object_are_refused(tmp_path: Path) -> None:
    config = json.dumps({"cluster": {"ps": ["a:1"]}, "task": {"type": "ps", "index": 0}})
    argv = [sys.executable, "-m", "jobs.main", "digits", "--train", "[1]"]
    ended = subprocess.run(
        argv, cwd=str(ROOT), env={"TF_CONFIG": config, "PATH": ""}, stderr=subprocess.PIPE, timeout=PATIENCE_S
    )
    assert ended.returncode == 1 and b"--train: expected a JSON object, found '[1]'" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("role", ["ps", "worker"])
def test_a_signal_ends_a_task_that_waits_for_others_at_once(tmp_path: Path, role: str, number: int) -> None:
    with Cluster(tmp_path, "polynomial") as cluster:
        cluster.start("ps", 0, {"steps": 5})
        if role == "worker":
            cluster.start("worker", 1, {"steps": 5})  # waits for the chief, which never comes
        address = cluster.addresses[role][-1]
        eventually("its server", lambda: _accepts(address))
        index = len(cluster.addresses[role]) - 1
        cluster.running[role, index].send_signal(number)
        assert cluster.exit_code(role, index) == -number


def test_a_parameter_server_ends_by_itself_when_the_chief_says_so_and_writes_its_outcome(tmp_path: Path) -> None:
    with Cluster(tmp_path, "polynomial", ps=2, workers=1) as cluster:
        cluster.start_all({"steps": 3})
        cluster.finish()
        for index in range(2):
            outcome = cluster.outcome("ps", index)
            assert outcome is not None and outcome.succeeded


# A thread of the job must not keep the process: its agent would wait for it.
_THREAD = "    import threading, time\n    threading.Thread(target=time.sleep, args=[1000]).start()\n"


def test_a_mistake_of_a_task_that_waits_for_its_turn_is_no_outcome_of_the_one_that_trains(tmp_path: Path) -> None:
    cluster = {"cluster": {"ps": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}, "task": {"type": "worker", "index": 0}}
    env = {**os.environ, "TF_CONFIG": json.dumps(cluster), "LAUNCH_TASK_DIR": str(tmp_path), "LAUNCH_STANDBY": "1"}
    argv = [
        sys.executable,
        "-m",
        "jobs.main",
        written(tmp_path, INPUTS, OPTIMIZER, f"def model(x):\n{_THREAD}    return missing\n"),
    ]
    read, write = os.pipe()  # stays open: an input that ends would end the process
    with os.fdopen(read) as turns, os.fdopen(write, "w"):
        ran = subprocess.run(argv, cwd=str(ROOT), env=env, stdin=turns, stderr=subprocess.PIPE, timeout=PATIENCE_S)
    assert ran.returncode == 1 and b"name 'missing' is not defined" in ran.stderr
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["mine.py"]


def test_help_names_the_arguments_and_shows_an_example_under_a_hand_written_tf_config() -> None:
    argv = [sys.executable, "-m", "jobs.main", "-h"]
    text = subprocess.run(argv, cwd=str(ROOT), stdout=subprocess.PIPE, timeout=PATIENCE_S).stdout.decode()
    for part in ("--train JSON", "--args JSON", "TF_CONFIG=", "task ps 0 & task worker 1 & task worker 0"):
        assert part in text


def _accepts(address: str) -> bool:
    host, port = address.split(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0
