"""A grid on this machine: cut off by Ctrl-C while one point waits for the ports of the other, then continued.

The best model of a grid of jobs is exported, as the grid says, with the arguments of its point.
"""

import json
import re
import shlex
import signal
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

from tests.support.launch.launcher import Launcher, finish, run_here
from tests.support.training.serving import predicted
from tests.support.waiting import eventually

GRID = ("--grid", "env.all.X=1,2", "--at-once", "2")
# Listens on its port, reports $X as its loss, and goes on until a file is there.
PROGRAM = """
import json, os, socket, sys, time
listening = socket.socket()
listening.bind(("", int(sys.argv[1])))
listening.listen()
with open(os.environ["LAUNCH_PROGRESS"], "a") as progress:
    print(json.dumps({"step": 1, "loss": float(os.environ["X"])}), file=progress)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.1)
"""


def recorded(launch: Launcher) -> List[Dict[str, Any]]:
    """The points as the record of the only grid has them; two waiting ones before there is one."""
    found = [json.loads(path.read_text()) for path in launch.workdir.glob("local/grids/*/grid.json")]
    points: List[Dict[str, Any]] = found[0]["points"] if found else [{"state": "", "cause": None}] * 2
    return points


def test_a_grid_waits_for_ports_stops_in_order_and_continues_where_it_stopped(launch: Launcher) -> None:
    (launch.file.parent / "listen.py").write_text(PROGRAM)
    launch.write(command=["{python}", "listen.py", "{port}", str(launch.folder / "go")])
    grid = launch.begin("grid", *GRID)
    eventually("the first point is up", lambda: recorded(launch)[0]["state"] == "running")
    eventually("the second is refused", lambda: "port" in (recorded(launch)[1]["cause"] or ""))
    grid.send_signal(signal.SIGINT)
    ended = finish(grid)
    again = f"launch grid {launch.file} {' '.join(map(shlex.quote, GRID))}"
    assert ended.returncode == 130, ended.stderr
    assert f"0 of 2 points are finished; continue with `{again}`" in ended.stderr
    assert [point["state"] for point in recorded(launch)] == ["stopped", "waiting"] and launch.left() == []

    (launch.folder / "go").touch()
    ended = launch("grid", *GRID, "--json")
    outcome = json.loads(ended.stdout)
    assert ended.returncode == 0, ended.stderr
    assert [(point["state"], point["value"]) for point in outcome["points"]] == [("succeeded", 1), ("succeeded", 2)]
    assert (outcome["best"], outcome["metric"], outcome["goal"]) == ("r.1", "loss", "min")


# The loss of each step is the square of the argument "far"; with "broken", no step ever ends.
JOB = """
import tensorflow.compat.v1 as tf

def inputs(task, args):
    if args.get("broken"):
        raise ValueError("no data")
    return tf.data.Dataset.from_tensors({"x": 0.0}).repeat().batch(task.batch_size, drop_remainder=True)

def model(x, args):
    return tf.square(x + args["far"]) + 0 * tf.get_variable("w", [], initializer=tf.zeros_initializer())

def optimizer(args):
    return tf.train.GradientDescentOptimizer(1.0)

def predict(x, args):
    return {"far": x + args["far"] + tf.get_variable("w", [])}
"""


def test_the_best_model_is_exported_as_the_grid_says(launch: Launcher, tmp_path: Path) -> None:
    (launch.file.parent / "job.py").write_text(JOB)
    cluster = {"ps": ["gpu01"], "worker": ["gpu02"]}
    train = {"steps": 2, "batch_size": 1}
    launch.write(name=None, command=None, job="job.py", cluster=cluster, train=train, args={"far": 7})
    grid = ("grid", "--local", "--set", "train.steps=3", "--grid", "args.far=3,2")
    ended = launch(*grid)
    assert ended.returncode == 0, ended.stderr
    best, command = ended.stdout.splitlines()[-2:]
    (words,) = re.findall(r"^export it with `launch (.*)`$", command)
    assert best.startswith("best: hosts.2 (args.far=2)")
    assert words.startswith(f"export --local {launch.file} ~/hosts.2 --run hosts.2-") and "--set" not in words

    ran = run_here(*shlex.split(words.replace("~", str(tmp_path))))
    assert ran.returncode == 0, ran.stderr
    assert "with the arguments of the run: far=2 (the file has 7)" in ran.stderr
    found = predicted(tmp_path / "hosts.2", "session", {"x": np.zeros(1, np.float32)})["far"]
    np.testing.assert_array_equal(found, [2.0])

    names = {run["name"] for run in json.loads(launch("runs", "--json").stdout)["runs"]}
    assert names == {"hosts.1", "hosts.2"}
    refused = launch("export", str(tmp_path / "no"))
    assert refused.returncode == 2 and "choose a run of its grid with --run: hosts.2-" in refused.stderr

    assert launch(*grid).stdout == ended.stdout  # trains nothing
    (launch.file.parent / "job.py").write_text(f"{JOB}# other")
    refused = launch(*grid)
    assert refused.returncode == 2 and "job.py has changed since the grid began" in refused.stderr


def test_a_mistake_in_the_job_fails_one_point_alone(launch: Launcher) -> None:
    (launch.file.parent / "job.py").write_text(JOB)
    cluster = {"ps": ["gpu01"], "worker": ["gpu02"]}
    train = {"steps": 2, "batch_size": 1}
    launch.write(command=None, job="job.py", cluster=cluster, train=train, args={"broken": True})
    ended = launch("grid", "--local", "--grid", "args.far=1,2")
    assert ended.returncode == 1, ended.stderr
    assert [point["state"] for point in recorded(launch)] == ["failed", "waiting"]
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("no further point begins, because every point so far failed before its first step;")
