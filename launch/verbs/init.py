"""``launch init``: the files of a first job: a table, three functions, a hosts file, a script that predicts.

``launch schema`` prints the JSON Schema that ``init`` writes beside the hosts file. An editor finds
the schema there by its name, on any machine and without a network.
"""

import random
import re
import shlex
from pathlib import Path
from typing import Dict

import click

from cluster.spec.schema import SCHEMA_FILE
from launch.errors import SUCCEEDED, UsageError
from launch.view.console import say

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")  # a valid value of the key name
_HOUSES = 500

_JOB = '''\
"""The price of a house in thousands, as a linear function of its area, its rooms and its age."""

import numpy as np
import tensorflow.compat.v1 as tf
from cluster import Task


def houses(held_out):
    """Read data.csv, which lies beside this file. Every fifth house is held out."""
    rows = np.loadtxt("data.csv", delimiter=",", skiprows=1, dtype=np.float32)
    rows = rows[(np.arange(len(rows)) % 5 == 4) == held_out]
    return tf.data.Dataset.from_tensor_slices({"x": rows[:, :3], "y": rows[:, 3]})


def price(x):
    weights = tf.get_variable("weights", [3, 1])
    bias = tf.get_variable("bias", [], initializer=tf.zeros_initializer())
    scaled = (x - [120.0, 4.0, 40.0]) / [45.0, 1.4, 23.0]  # by mean and deviation of each column
    return tf.squeeze(tf.matmul(scaled, weights), 1) + bias


def inputs(task: Task, args):
    """Return this worker's part of the houses, again and again, in batches."""
    mine = houses(held_out=False).shard(task.num_workers, task.worker_index)
    return mine.shuffle(1000).repeat().batch(task.batch_size, drop_remainder=True)


def model(x, y):
    """Return the loss of each house, and by how many thousands its price is wrong."""
    error = price(x) - y
    return tf.square(error), {"error": tf.abs(error)}


def optimizer(args):
    return tf.train.GradientDescentOptimizer(args.get("learning_rate", 0.05))


def evaluate(task: Task, args):
    """Return the houses that no worker has trained on: the run ends with their loss and error."""
    return houses(held_out=True).batch(100)


def predict(x):
    """Return what `launch export` serves."""
    return {"price": price(x)}
'''

_PREDICT = '''\
"""Print the price of a house by the newest checkpoint: python predict.py AREA ROOMS AGE"""

import glob
import os
import sys

import tensorflow.compat.v1 as tf

from job import price

RUNS = [os.path.expanduser(f"~/.launch/{runs}/NAME-[0-9]*") for runs in ("runs", "local/runs")]  # or with --local

lists = [path for runs in RUNS for path in glob.glob(f"{runs}/checkpoint/checkpoint")]
if len(sys.argv) != 4:
    sys.exit("usage: python predict.py AREA ROOMS AGE")
if not lists:
    sys.exit("predict.py: expected a checkpoint on this machine, found none; train with `launch up hosts.yaml`")
with tf.Graph().as_default(), tf.Session() as session:
    prices = price(tf.constant([[float(each) for each in sys.argv[1:]]]))
    tf.train.Saver().restore(session, tf.train.latest_checkpoint(os.path.dirname(max(lists, key=os.path.getmtime))))
    print(f"{session.run(prices)[0]:.0f} thousand")
'''

_HOSTS = f"""\
# yaml-language-server: $schema={SCHEMA_FILE.name}
# 1 parameter server and 2 workers on this machine. `launch plan hosts.yaml` shows the tasks.
name: NAME
job: job.py

cluster:
  ps: [localhost]                          # other machines: [cpu01]
  worker: [{{host: localhost, count: 2}}]    # [{{host: "gpu[01-04]", gpus: [0, 1]}}]

train:
  steps: 400
  batch_size: 32
"""

_README = """\
# NAME

    launch up hosts.yaml             # train; Ctrl-C stops it cleanly
    python predict.py 120 4 15       # 120 m², 4 rooms, 15 years old: about 306 thousand
    launch up hosts.yaml --resume --set train.steps=800

Put your own table into `data.csv`, and your columns into `job.py`. `hosts.yaml` names the machines and the steps.
Tasks work in a copy of this folder. Checkpoints are in `~/.launch/runs` on the first worker's host; with `up --local`,
in `~/.launch/local/runs`.
"""


def write(folder: Path) -> Dict[str, str]:
    """Write a first job into a new folder, and return the text of each file.

    Raises:
      UsageError: the folder exists, cannot be created, or its name is not valid for a run.
    """
    name = folder.name
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"launch init: expected a name of letters, digits, '.', '_' and '-', found {name!r}; choose another"
        )
    files = texts(name)
    try:
        folder.mkdir()
        for each, text in files.items():
            (folder / each).write_text(text, encoding="utf-8")
    except FileExistsError:
        raise UsageError(
            f"launch init: expected a folder that does not exist yet, found {folder}; name another folder"
        ) from None
    except OSError as error:
        raise UsageError(f"launch init: cannot write {folder}: {error.strerror}; name another folder") from error
    return files


def texts(name: str) -> Dict[str, str]:
    """Return the text of each file of the first job ``name``, by the file's name."""
    found = {"job.py": _JOB, "data.csv": _table(), "hosts.yaml": _HOSTS, "predict.py": _PREDICT, "README.md": _README}
    written = {file: text.replace("NAME", name) for file, text in found.items()}
    return {**written, SCHEMA_FILE.name: SCHEMA_FILE.read_text(encoding="utf-8")}


def _table() -> str:
    """Return made-up houses, always the same; each price is some thousands away from a linear function."""
    chance = random.Random(0)
    lines = ["area,rooms,age,price"]
    for _ in range(_HOUSES):
        area, rooms, age = chance.randint(40, 200), chance.randint(2, 6), chance.randint(0, 80)
        lines.append(f"{area},{rooms},{age},{40 + 2 * area + 8 * rooms - 0.4 * age + chance.gauss(0, 5):.1f}")
    return "\n".join(lines) + "\n"


@click.command()
@click.argument("name", type=click.Path())
def init(name: str) -> int:
    """Write a first job into the new folder NAME.

    The folder has a table, a job that learns from it, a hosts file of this machine, and a script that predicts
    with the result. Nothing that exists is overwritten.

    \b
    Example:  launch init houses
              launch up houses/hosts.yaml
    """
    folder = Path(name)
    files = write(folder)
    say(f"wrote {folder}: {', '.join(files)}", f"train it with `launch up {shlex.quote(str(folder / 'hosts.yaml'))}`")
    return SUCCEEDED


@click.command()
def schema() -> int:
    """Print the JSON Schema of hosts files, for editors.

    The first line of a hosts file names the schema: # yaml-language-server: $schema=hosts.schema.json

    \b
    Example:  launch schema > hosts.schema.json
    """
    say(SCHEMA_FILE.read_text(encoding="utf-8").rstrip("\n"))
    return SUCCEEDED
