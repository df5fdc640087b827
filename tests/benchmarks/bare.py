"""The order of an overlapped step and nothing else: what this project's steps can be compared with.

One task under TF_CONFIG: ``python -m tests.benchmarks.bare JSON`` with steps and shapes. Every slice is a variable of
its own, of which each worker has a copy; nothing is cut, joined, checked or noted, and nobody may start again. The
order is that of ``cluster.steps.overlapped_sync``.
"""

import json
import os
import sys
import time
from typing import Any, Dict, List

import tensorflow.compat.v1 as tf

from cluster.task import Task
from tests.benchmarks.speed import job

WINDOW = 2  # slices of one ps that are under way
WELCOME = 1 << 60  # a step that no accumulator finds too old
LOOK_S = 0.5  # between two looks for values


def main() -> None:
    """Runs one task until it is ended from outside."""
    tf.disable_v2_behavior()
    options: Dict[str, Any] = json.loads(sys.argv[1])
    task = Task.from_environment(os.environ)
    server = tf.train.Server(dict(task.cluster), task.role, task.index)
    if task.role == "ps":
        server.join()
    steps = step_of(task, options["shapes"])
    ready = tf.size(tf.report_uninitialized_variables(tf.global_variables()))
    filters = ["/job:ps", f"/job:worker/task:{task.index}"]
    session = tf.Session(server.target, config=tf.ConfigProto(device_filters=filters))
    if task.index == 0:
        session.run(tf.global_variables_initializer())
    while session.run(ready):
        time.sleep(LOOK_S)
    session.run(tf.local_variables_initializer())
    for number in range(options["steps"]):
        print(f"step {number}/{options['steps']}", flush=True)
        session.run(steps)


def step_of(task: Task, shapes: List[List[int]]) -> Any:
    """One step of a worker; that of worker 0 also updates the variables."""
    workers, ps, zeros = task.num_workers, len(task.cluster["ps"]), tf.zeros_initializer()
    own, local = f"/job:worker/task:{task.index}/device:CPU:0", [tf.GraphKeys.LOCAL_VARIABLES]
    with tf.device(own):
        copies = [
            tf.get_variable(f"copy{i}", shape, initializer=zeros, collections=local) for i, shape in enumerate(shapes)
        ]
        reads = [copy.read_value() for copy in copies]
        grads = tf.gradients(job.mean_of_firsts_squared(reads), reads)
    brought: List[List[Any]] = [[] for _ in range(ps)]
    told = []
    for i in reversed(range(len(shapes))):
        lane, server = brought[i % ps], f"/job:ps/task:{i % ps}/device:CPU:0"
        with tf.device(own), tf.control_dependencies([lane[-WINDOW]] if len(lane) >= WINDOW else []):
            grad = tf.identity(grads[i])
        with tf.device(server):
            value = tf.get_variable(f"v{i}", shapes[i], initializer=zeros, use_resource=False)
            sums = tf.ConditionalAccumulator(tf.float32, shapes[i], shared_name=f"sum{i}")
            tokens = [tf.FIFOQueue(-1, tf.bool, [()], shared_name=f"token{i}_{worker}") for worker in range(workers)]
            given = sums.apply_grad(grad, local_step=WELCOME)
            if task.index == 0:
                with tf.control_dependencies([tf.assign_sub(value, 0.01 * sums.take_grad(workers))]):
                    told += [queue.enqueue(True) for queue in tokens]
            with tf.control_dependencies([given]):
                token = tokens[task.index].dequeue()
            with tf.control_dependencies([token]):
                new = value.read_value()
        with tf.device(own):
            lane.append(tf.assign(copies[i], new))
    return tf.group(*told, *[operation for lane in brought for operation in lane])


if __name__ == "__main__":
    main()
