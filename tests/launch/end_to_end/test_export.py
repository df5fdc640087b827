"""``launch export`` of a run that trains, and of one that has ended."""

import json
from pathlib import Path

import numpy as np

from tests.support.launch.launcher import Launcher
from tests.support.training.serving import predicted
from tests.support.waiting import eventually

# The variable w is the number of the step: a served value names the step that it is of.
JOB = """
import time
import tensorflow.compat.v1 as tf

def inputs(task, args):
    def batches():
        while True:
            time.sleep(0.05)  # the export needs the processor, too
            yield {"x": [0.0] * task.batch_size}

    return tf.data.Dataset.from_generator(batches, {"x": tf.float32}, {"x": [task.batch_size]})

def model(x):
    return x - tf.get_variable("w", [], initializer=tf.zeros_initializer())

def optimizer(args):
    return tf.train.GradientDescentOptimizer(1.0)
"""
PREDICT = """
def predict(x):
    return {"step": x + tf.get_variable("w", [])}
"""


def test_a_run_that_trains_saves_is_exported_and_trains_on(launch: Launcher, tmp_path: Path) -> None:
    (launch.file.parent / "job.py").write_text(JOB)
    cluster = {"ps": [f"localhost:{launch.ports[0]}"], "worker": [f"localhost:{launch.ports[1]}"]}
    train = {"steps": 10_000_000, "batch_size": 1, "checkpoint": {"every_s": 3600}}
    launch.write(command=None, job="job.py", cluster=cluster, train=train)
    assert launch("up", "-d").returncode == 0
    (launch.file.parent / "job.py").write_text(JOB + PREDICT)  # after the training has begun
    (tmp_path / "served.partial").mkdir()  # of the user
    ran = launch("export", str(tmp_path / "served"), "--json")
    assert ran.returncode == 0, ran.stderr
    exported, step = json.loads(ran.stdout), launch.status()["global_step"]
    checkpoint, version = exported["checkpoint"], exported["version"]
    eventually("training goes on", lambda: launch.status()["global_step"] > step)
    ran = launch("export", str(tmp_path / "deltas"), "--since", version, "--json")
    assert ran.returncode == 0, ran.stderr
    delta, (made,) = json.loads(ran.stdout), (tmp_path / "deltas").iterdir()
    assert str(made) == delta["folder"] and made.name == f"{version}..{delta['version']}.npz"
    with np.load(str(made)) as archive:
        assert archive["variable/w"] == float(delta["version"].split("-")[0]) > step - 1
    launch.end()
    found = predicted(tmp_path / "served", "session", {"x": np.zeros(3, np.float32)})["step"]
    np.testing.assert_array_equal(found, [float(checkpoint.split("-")[1])] * 3)
    refused = launch("export", str(tmp_path / "no"), "--checkpoint", "7")
    assert refused.returncode == 3 and "expected a checkpoint of step 7" in refused.stderr, refused.stderr
    assert launch("export", str(tmp_path / "served")).returncode == 2
    refused = launch("export", str(tmp_path / "no"), "--since", "7-00000000")
    assert refused.returncode == 3 and f"found 7-00000000 (there: {version}" in refused.stderr, refused.stderr
    newest = json.loads(launch("export", str(tmp_path / "whole"), "--since", "0", "--json").stdout)
    assert [path.name for path in (tmp_path / "whole").iterdir()] == [f"0..{newest['version']}.npz"]
    same = launch("export", str(tmp_path / "whole"), "--since", newest["version"])
    assert same.returncode == 0 and "nothing has changed" in same.stderr, same.stderr
    assert len(list((tmp_path / "whole").iterdir())) == 1
    assert launch("export", str(tmp_path / "no"), "--since", "../7").returncode == 2
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.parent.name == "no"]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".served", ".no"))]
    assert (tmp_path / "served.partial").is_dir()
    assert not list(launch.run_folder().glob("export.*"))
