"""A job that any fault may meet: four weights and a bias, fitted to all examples in every step of every worker.

So each worker's gradient is that of the whole data, and the variables after a step are a function of the step
alone, however many workers there are and in whatever order they come. They stand in ``rows`` rows, of which the model
takes the mean: as all begin alike, each row has what a single one would have, and a part of them that missed an update
or had one twice is seen.

args: pause_ms (how long a batch takes), optimizer (``sgd`` or ``adam``), rate, decay (of the weights, in the loss),
rows, and ``trouble``: a folder on the host, in whose subfolder of the task's name (``worker.1``) a file makes the next
batch go wrong:

    raise_once, raise   a RuntimeError; the first only once
    nan                 examples that are not numbers
    hang                this batch never comes; the next attempt's do
    setsid              a process in a session of its own, named in the file ``stayed``. The task's next attempt notes
                        in the file ``outlived`` that it met it
"""

import os
import subprocess
import time
from typing import Any, Dict, Optional, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.task import Task

EXAMPLES, WEIGHTS = 32, 4
EPSILON = 1e-8  # Adam's, where there is one row


def examples(seed: int) -> Tuple[np.ndarray, np.ndarray]:
    """Points [n, 4] and their targets [n]; seed 0 is trained on, seed 1 is held out."""
    random = np.random.RandomState(seed)
    x = random.uniform(-1, 1, [EXAMPLES, WEIGHTS]).astype(np.float32)
    return x, (x @ np.array([3.0, -2.0, 1.0, 0.5], np.float32) + 1).astype(np.float32)


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    folder = os.path.join(os.path.expanduser(args["trouble"]), task.name.replace(":", "."))
    x, y = examples(0)
    _look_for_company(folder)

    def batch(index: tf.Tensor) -> Dict[str, tf.Tensor]:
        factor = tf.py_func(lambda: np.float32(_meet(folder, args["pause_ms"] / 1000)), [], tf.float32)
        factor.set_shape([])
        return {"x": x * factor, "y": tf.constant(y)}

    return tf.data.Dataset.range(1).repeat().map(batch)


def model(x: tf.Tensor, y: tf.Tensor, args: Dict[str, Any]) -> tf.Tensor:
    weights = tf.get_variable("weights", [args["rows"], WEIGHTS], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [args["rows"], 1], initializer=tf.zeros_initializer())
    loss = tf.square(tf.reduce_sum(x * _mean(weights), 1) + _mean(bias) - y)
    return loss + args["decay"] / args["rows"] * _decayed() if args["decay"] else loss


def _decayed() -> tf.Tensor:
    """Return what decay adds to a loss, found as authors find it: among the trainable variables, and by name."""
    return tf.add_n([tf.nn.l2_loss(each) for each in tf.trainable_variables() if "bias" not in each.op.name])


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    rate, rows = args["rate"], args["rows"]  # each row has its part of the gradient
    if args["optimizer"] == "adam":
        return tf.train.AdamOptimizer(rate, epsilon=EPSILON / rows)
    return tf.train.GradientDescentOptimizer(rate * rows)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    x, y = examples(1)
    return tf.data.Dataset.from_tensors({"x": x, "y": y})


def _mean(rows: tf.Tensor) -> tf.Tensor:
    """[values] of [rows, values]. Added up in 32 bits, so many rows would be a thousandth off."""
    return tf.cast(tf.reduce_mean(tf.cast(rows, tf.float64), 0), tf.float32)


def _look_for_company(folder: str) -> None:
    try:
        with open(os.path.join(folder, "stayed")) as file:
            pid, started = file.read().split()
    except FileNotFoundError:
        return
    if _started(int(pid)) == started:
        _put(folder, "outlived", pid)


def _started(pid: int) -> Optional[str]:
    """Return when a process was started, by its kernel's count; None where none lives."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            values = file.read().rpartition(")")[2].split()
            return None if values[0] == "Z" else values[19]
    except (FileNotFoundError, ProcessLookupError):
        return None


def _put(folder: str, name: str, text: str) -> None:
    """Write a file that is whole as soon as it is there."""
    place = os.path.join(folder, name)
    with open(f"{place}.new", "w") as file:
        file.write(text)
    os.replace(f"{place}.new", place)


def _meet(folder: str, pause_s: float) -> float:
    """Waits as long as a batch takes, meets what trouble there is, and returns what examples are multiplied with."""
    time.sleep(pause_s)
    try:
        troubles = os.listdir(folder)
    except FileNotFoundError:
        return 1.0
    if "raise_once" in troubles:
        os.unlink(os.path.join(folder, "raise_once"))
        raise RuntimeError("chaos: this batch went wrong")
    if "raise" in troubles:
        raise RuntimeError("chaos: every batch goes wrong")
    if "setsid" in troubles:
        os.unlink(os.path.join(folder, "setsid"))
        company = subprocess.Popen(["sleep", "600"], start_new_session=True)
        _put(folder, "stayed", f"{company.pid} {_started(company.pid)}")
    if "hang" in troubles:
        os.unlink(os.path.join(folder, "hang"))
        while True:
            time.sleep(0.05)
    return float("nan") if "nan" in troubles else 1.0
