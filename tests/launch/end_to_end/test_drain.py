"""Parameter servers and workers come and go while a job trains: every step is taken once, and counts once."""

import json
import textwrap
from pathlib import Path
from typing import Iterator

import pytest

from launch.agent.linux.sockets import free_ports
from tests.support.launch.launcher import Launcher
from tests.support.waiting import PATIENCE_S, eventually

STEPS = 1500
# Each step of plain descent takes 1 from the variable and from the row: the end shows how many counted. And the chief
# writes a line for each that it takes.
JOB = """
    import json, os, time
    import tensorflow.compat.v1 as tf
    from cluster import embedding


    def inputs(task, args):
        def pause(x):
            time.sleep(0.0 if os.path.exists(args["enough"]) else 0.2)
            return x

        def batch(index):
            x = tf.py_func(pause, [tf.ones([task.batch_size])], tf.float32)
            x.set_shape([task.batch_size])
            return {"x": x}

        return tf.data.Dataset.range(1).repeat().map(batch)


    def evaluate(task, args):
        return tf.data.Dataset.from_tensors({"x": tf.zeros([task.batch_size])})


    def model(x, args):
        def note(x):
            task = json.loads(os.environ["TF_CONFIG"])["task"]
            if x[0] and task == {"type": "worker", "index": 0}:
                with open(args["taken"], "a") as file:
                    file.write("a step\\n")
            return x

        x = tf.py_func(note, [x], tf.float32)
        x.set_shape([None])
        count = tf.get_variable("count", [], initializer=tf.zeros_initializer())
        rows = embedding.table("rows", 1, initializer=tf.zeros_initializer())
        row = embedding.lookup(rows, tf.fill(tf.shape(x), tf.constant(7, tf.int64)))[:, 0]
        return x * (count + row), {"count": tf.ones_like(x) * count, "row": row}


    def optimizer(args):
        return tf.train.GradientDescentOptimizer(1.0)
"""


@pytest.fixture
def counting(launch: Launcher) -> Iterator[Launcher]:
    """A run of one ps and two workers, with two spares, that takes its time until the file ``enough`` is there."""
    (launch.file.parent / "counts.py").write_text(textwrap.dedent(JOB))
    launch.write(
        command=None, restart=None, job="counts.py", spares=[f"localhost:{port}" for port in free_ports(2)],
        elastic={"min_workers": 1}, train={"steps": STEPS, "batch_size": 2},
        args={"enough": str(launch.folder / "enough"), "taken": str(launch.folder / "taken")},
    )  # fmt: skip
    ran = launch("up", "-d")
    assert ran.returncode == 0, ran.stderr
    yield launch
    launch.end()


@pytest.mark.nightly  # formations of TensorFlow; tests/launch/end_to_end/test_elastic_on_hosts.py has one drain
def test_no_step_is_lost_or_taken_twice_while_servers_and_a_worker_come_and_go(counting: Launcher) -> None:
    refused = counting("drain", "worker:0")
    why = "worker:0 is the chief, which leads the run; choose other tasks"
    assert refused.returncode == 2 and why in refused.stderr
    begun = counting.status()["global_step"]
    added = counting("drain", "--back", "ps:1", "ps:2")
    assert added.returncode == 0, added.stderr
    assert "2 of 2 workers, 3 of 3 ps" in added.stderr + added.stdout
    left = counting("drain", "ps:0", "worker:1")
    assert left.returncode == 0, left.stderr
    status = counting.status()
    assert status["formation"]["drained"] == ["ps:0", "worker:1"] and status["formation"]["number"] == 2
    assert status["global_step"] > begun
    assert {
        task["state"] for task in status["tasks"] if (task["role"], task["index"]) in (("ps", 0), ("worker", 1))
    } == {"stopped"}
    pids = [task["pid"] for task in status["tasks"] if task["state"] == "running"]
    assert all(b"LAUNCH_STANDBY=" in Path(f"/proc/{pid}/environ").read_bytes() for pid in pids)
    (counting.folder / "enough").touch()
    eventually("the end", lambda: counting.status()["state"] not in ("starting", "running"), PATIENCE_S)
    ended = counting.status()
    assert (ended["state"], ended["global_step"]) == ("succeeded", STEPS), ended["cause"]
    assert ended["metrics"]["count"] == ended["metrics"]["row"] == -STEPS
    assert (counting.folder / "taken").read_text().count("a step") == STEPS
    assert json.loads(counting("status", "--json").stdout)["incidents"] == [] and counting.left() == []
