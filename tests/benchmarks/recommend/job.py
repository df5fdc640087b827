"""This project's part: the networks of jobs/clicks.py, on the examples that all systems read.

args: data and held_out (files), held_out_batches, and those of jobs/clicks.py.
"""

from typing import Any, Dict

import tensorflow.compat.v1 as tf

from cluster.task import Task
from jobs import clicks
from tests.benchmarks.recommend import data

optimizer = clicks.optimizer


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return data.batches(tf, args["data"], task.batch_size, task.worker_index, task.num_workers)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return data.batches(tf, args["held_out"], args["held_out_batch"]).take(args["held_out_batches"])


def model(label: tf.Tensor, numbers: tf.Tensor, categories: tf.Tensor, args: Dict[str, Any]) -> Any:
    logits = clicks.logits_of(numbers, categories, args)
    loss = tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits)
    return loss, {"auc": (label, logits)}
