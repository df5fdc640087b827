"""An elastic run on real hosts goes on without those that lose their cable or power, takes one back, and drains it."""

import textwrap
from pathlib import Path
from typing import Callable

from tests.support.hosts import FakeHosts
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import PATIENCE_S, eventually

STEPS = 600
# Steps last until the test has seen enough; the table has parts on every ps.
JOB = """
    import os, time
    import tensorflow.compat.v1 as tf


    def inputs(task, args):
        def pause(x):
            time.sleep(0.0 if os.path.exists("/root/enough") else 0.4)
            return x

        def batch(index):
            x = tf.py_func(pause, [tf.random_uniform([task.batch_size, 4])], tf.float32)
            x.set_shape([task.batch_size, 4])
            return {"x": x, "row": tf.random_uniform([task.batch_size], 0, 100, tf.int32)}

        return tf.data.Dataset.range(1).repeat().map(batch)


    def model(x, row):
        w, table = tf.get_variable("w", [4, 8]), tf.get_variable("table", [100, 8])
        return tf.square(tf.reduce_sum((x @ w) * tf.nn.embedding_lookup(table, row), 1) - tf.reduce_sum(x, 1))


    def optimizer(args):
        return tf.train.GradientDescentOptimizer(0.001)
"""


class Elastic(HostsFile):
    """Four hosts: the chief on h1, a ps each on h2 and h3, a worker on h4."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "elastic")
        (folder / "patient.py").write_text(textwrap.dedent(JOB))
        train = {"steps": STEPS, "batch_size": 4, "checkpoint": {"every_s": 2}}
        cluster = {"ps": ["h[2-3]"], "worker": ["h1", "h4"]}
        self.put(job="patient.py", cluster=cluster, train=train, elastic={"min_workers": 1})

    def trains(self, formation: int, beyond: int) -> bool:
        """Whether this formation has taken a newer step than ``beyond``."""
        told = self.told()
        return bool(told) and told["formation"]["number"] == formation and (told["global_step"] or 0) > beyond


def test_a_run_goes_on_without_lost_hosts_takes_one_back_drains_it_and_reaches_its_step(
    fake_hosts: Callable[[int], FakeHosts], tmp_path: Path
) -> None:
    elastic = Elastic(fake_hosts(4), tmp_path)
    h1, h2, h3, h4 = elastic.hosts
    up = elastic.start("up")
    try:
        eventually("a checkpoint", lambda: elastic.told().get("checkpoint_step"))
        h4.unplug()
        h2.power_cut()
        eventually("training without h2 and h4", lambda: elastic.trains(1, beyond=1))
        told = elastic.told()
        assert (told["formation"]["workers"], told["formation"]["ps"]) == (1, 1)
        assert {task["host"] for task in told["tasks"] if task["state"] == "lost"} == {"h2", "h4"}
        h4.plug()
        eventually("training with h4", lambda: elastic.trains(2, beyond=told["global_step"]))
        eventually("training without h4 again", lambda: elastic.launch("drain", "h4").returncode == 0)
        (on_h3,) = (task for task in elastic.told()["tasks"] if task["host"] == "h3")
        assert "LAUNCH_STANDBY=" in h3.run(["cat", f"/proc/{on_h3['pid']}/environ"]).stdout
        for host in (h1, h4):
            host.write("/root/enough", "")
        output, _ = up.communicate(timeout=PATIENCE_S)
    finally:
        up.kill()
    assert up.returncode == 0, output
    assert f"succeeded: step {STEPS}" in output
    told = elastic.told()
    formation = told["formation"]
    assert (formation["without"], formation["drained"], formation["workers"]) == (["h2"], ["worker:1"], 1)
    assert {(each["kind"], each["host"]) for each in told["incidents"]} == {("host", "h2"), ("host", "h4")}
