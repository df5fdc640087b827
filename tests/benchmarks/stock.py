"""The textbook's script, to compare with: TensorFlow's own SyncReplicasOptimizer, or one that waits for nobody.

One task of it, under TF_CONFIG: ``python -m tests.benchmarks.stock JSON`` with steps, backup_workers,
pause_s (for each worker the seconds that every one of its steps takes) and shapes (of the variables), or a job with its
args and batch_size; ``waits`` is false for asynchronous training. A worker tells the global step at most once a second,
and the seconds per global step that it saw as its last line.
"""

import dataclasses
import json
import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, Tuple

import tensorflow.compat.v1 as tf

from cluster.job import load
from cluster.task import Task
from tests.benchmarks.speed import job

WARM = 10  # global steps before the clock starts
TELL_S = 1.0


def main() -> None:
    """Runs one task to its end; a ps is ended by whoever started it."""
    tf.disable_v2_behavior()
    options: Dict[str, Any] = {"backup_workers": 0, "waits": True, "shapes": [[4]], **json.loads(sys.argv[1])}
    task = Task.from_environment(os.environ)
    options.setdefault("pause_s", [0.0] * task.num_workers)
    server = tf.train.Server(dict(task.cluster), task.role, task.index)
    if task.role == "ps":
        server.join()
    train(task, server, options)


def train(task: Task, server: Any, options: Dict[str, Any]) -> None:
    """A worker's part."""
    own = f"/job:worker/task:{task.index}"
    with tf.device(tf.train.replica_device_setter(cluster=dict(task.cluster), worker_device=own)):
        step = tf.train.get_or_create_global_step()
        loss, optimizer = model(task, options)
        hooks = [tf.train.StopAtStepHook(last_step=options["steps"])]
        if options["waits"]:
            needed = task.num_workers - options["backup_workers"]
            optimizer = tf.train.SyncReplicasOptimizer(optimizer, needed, task.num_workers)
            hooks.append(optimizer.make_session_run_hook(task.index == 0))
        train_op = optimizer.minimize(loss, step)
    config = tf.ConfigProto(device_filters=["/job:ps", own])
    with tf.train.MonitoredTrainingSession(
        server.target, task.index == 0, hooks=hooks, config=config, stop_grace_period_secs=1
    ) as session:
        loop(session, step, train_op, options["pause_s"][task.index], options["steps"])


def model(task: Task, options: Dict[str, Any]) -> Tuple[Any, Any]:
    """The loss, a scalar, and the optimizer of what is trained."""
    if "job" not in options:
        return job.loss(options["shapes"]), tf.train.GradientDescentOptimizer(0.01)
    args = options["args"]
    real = load(options["job"], Path(__file__).resolve().parents[2] / "jobs").with_args(args)
    mine = dataclasses.replace(task, batch_size=options["batch_size"])
    batch = tf.data.make_one_shot_iterator(real.inputs(mine, args)).get_next()
    return tf.reduce_mean(real.losses(real.model(**batch))[0]), real.optimizer(args)


def loop(session: Any, step: Any, train_op: Any, pause_s: float, steps: int) -> None:
    """Takes steps until the session says that it is over."""
    began, first, last, told = 0.0, 0, 0, 0.0
    while not session.should_stop():
        time.sleep(pause_s)
        session.run(train_op)
        if time.monotonic() - told < TELL_S or session.should_stop():
            continue
        last = int(session.run(step))  # by itself: beside the step it could be read before or after it
        told = time.monotonic()
        print(f"step {last}/{steps}", flush=True)
        if last >= WARM and not first:
            began, first = told, last
    print((told - began) / max(last - first, 1), flush=True)
    os._exit(0)  # closing waits for a queue runner that nothing will wake


if __name__ == "__main__":
    main()
