"""TensorFlow 1.15's own way: partitioned variables of hashed ids, SyncReplicasOptimizer; or one process.

A task under TF_CONFIG, or without it the one process: ``python -m tests.benchmarks.recommend.stock JSON`` with steps,
batch, workers, data, held_out, held_out_batch, held_out_batches, buckets (rows of a column), unique (look each id of a
batch up once), joined (one table for all columns), and the arguments of jobs/clicks.py. The last line of the chief is
the area under the ROC curve of held-out examples.
"""

import json
import os
import sys
import time
from typing import Any, Callable, Dict, List

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.task import Task
from jobs import clicks
from tests.benchmarks.recommend import data
from tests.benchmarks.recommend.area import area

TELL_S = 1.0
NEAR = 10  # steps before the end, from which on every one is counted


def main() -> None:
    """Run one task until it is ended from outside."""
    tf.disable_v2_behavior()
    options: Dict[str, Any] = json.loads(sys.argv[1])
    if "TF_CONFIG" not in os.environ:
        alone(options)
        return
    task = Task.from_environment(os.environ)
    server = tf.train.Server(dict(task.cluster), task.role, task.index)
    if task.role == "ps":
        server.join()
    train(task, server, options)


def alone(options: Dict[str, Any]) -> None:
    """Train in this process, on the batches of all workers together."""
    loss = loss_of(data.joined(tf, options["data"], options["batch"], options["workers"]), options, 0)
    count = tf.train.get_or_create_global_step()
    step = clicks.optimizer(options).minimize(loss, count)
    held_out = score(options, 0)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        loop(session, step, lambda: session.run(count), options, held_out)


def train(task: Task, server: Any, options: Dict[str, Any]) -> None:
    """Do a worker's part."""
    own, servers = f"/job:worker/task:{task.index}", len(task.cluster["ps"])
    with tf.device(tf.train.replica_device_setter(cluster=dict(task.cluster), worker_device=own)):
        step = tf.train.get_or_create_global_step()
        mine = data.batches(tf, options["data"], options["batch"], task.index, task.num_workers)
        loss = loss_of(mine, options, servers)
        optimizer = tf.train.SyncReplicasOptimizer(clicks.optimizer(options), task.num_workers, task.num_workers)
        train_op = optimizer.minimize(loss, step)
        held_out = score(options, servers) if task.index == 0 else []
        joined = tf.get_variable("joined", [], tf.int32, tf.zeros_initializer(), trainable=False, use_resource=False)
    join, all_joined = tf.assign_add(joined, 1, use_locking=True), joined.read_value() >= task.num_workers
    hooks = [optimizer.make_session_run_hook(task.index == 0)]
    config = tf.ConfigProto(device_filters=["/job:ps", own])
    with tf.train.MonitoredTrainingSession(server.target, task.index == 0, hooks=hooks, config=config) as session:
        session.run(join)
        while not session.run(all_joined):  # else the chief would give the others' gradients, too
            time.sleep(0.1)
        loop(session, train_op, lambda: session.run(step), options, held_out)


def loop(session: Any, train_op: Any, count: Callable[[], Any], options: Dict[str, Any], held_out: List[Any]) -> None:
    """Take steps, and print their count at most once a second; then the area, if this is the chief.

    Another worker goes on until it is ended from outside. TensorFlow lets a quick worker give two gradients to a step.
    So the chief may be a step behind at the end, and would wait for gradients.
    """
    told, number = 0.0, 0
    while number < options["steps"] or not held_out:
        session.run(train_op)
        if time.monotonic() - told > TELL_S or number >= options["steps"] - NEAR:
            number, told = int(count()), time.monotonic()
            print(f"step {number}/{options['steps']}", flush=True)
    found = [session.run(held_out) for _ in range(options["held_out_batches"])]
    print(f"auc {area(*(np.concatenate(each) for each in zip(*found))):.5f}", flush=True)
    time.sleep(3600)  # others' steps may still need this process: it is ended from outside


def loss_of(batches: Any, options: Dict[str, Any], servers: int) -> Any:
    """Return the mean loss of a batch."""
    batch = tf.data.make_one_shot_iterator(batches).get_next()
    logits = logits_of(batch, options, servers)
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=batch["label"], logits=logits))


def score(options: Dict[str, Any], servers: int) -> List[Any]:
    """Return labels and logits of the next held-out batch, by the same variables."""
    held_out = data.batches(tf, options["held_out"], options["held_out_batch"])
    batch = tf.data.make_one_shot_iterator(held_out).get_next()
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        return [batch["label"], logits_of(batch, options, servers)]


def logits_of(batch: Dict[str, Any], options: Dict[str, Any], servers: int) -> Any:
    """Return the logits of a batch [n]."""
    vectors = rows("deep", batch["categories"], options.get("width", 16), options, servers)
    if options["network"] == "dlrm":
        return clicks.dlrm(batch["numbers"], vectors, options)
    weights = rows("wide", batch["categories"], 1, options, servers)
    return clicks.wide_and_deep(batch["numbers"], vectors, weights, options)


def rows(name: str, ids: Any, width: int, options: Dict[str, Any], servers: int) -> Any:
    """Return the rows of ids [n, columns], in tables of hashed ids: [n, columns, width]."""
    buckets, columns = options["buckets"], int(ids.shape[1])
    hashed = tf.floormod(ids, buckets)
    if options["joined"]:
        places = tf.reshape(hashed + buckets * tf.range(columns, dtype=tf.int64), [-1])
        return tf.reshape(look_up(name, places, buckets * columns, width, options, servers), [-1, columns, width])
    return tf.stack(
        [look_up(f"{name}{each}", hashed[:, each], buckets, width, options, servers) for each in range(columns)], 1
    )


def look_up(name: str, places: Any, size: int, width: int, options: Dict[str, Any], servers: int) -> Any:
    """Return the rows of places [n] in one table of ``size`` rows, partitioned over the servers."""
    first = tf.random_normal_initializer(0.0, width**-0.5) if width > 1 else tf.zeros_initializer()
    partitioner = tf.fixed_size_partitioner(servers) if servers else None
    table = tf.get_variable(name, [size, width], initializer=first, partitioner=partitioner, use_resource=False)
    if not options["unique"]:
        return tf.nn.embedding_lookup(table, places)
    distinct, where = tf.unique(places)
    return tf.gather(tf.nn.embedding_lookup(table, distinct), where)


if __name__ == "__main__":
    main()
