"""A job that counts how often each example was trained, and by which worker: the trained variable is the ledger.

An example is a number, a line of its own. The gradient of ``ledger[worker, number]`` is not 0 in the steps that have
the example. Adam without memory adds its rate, 1, for any gradient that is not 0. The gradient of ``steps`` is -1 in
every step whose examples' parts add up to 1.

args: files (a folder; arriving: also those that come later), examples, workers (the most that there are), shard_bytes,
shuffle, pause_ms (of each batch), kind: lines, records (of one number each, whose file is a shard), sparse (lines; a
table takes the rows) or embedding (lines; an embedding table is the ledger). ``counts`` reads the ledger of a
checkpoint. Asynchronous workers need another kind than sparse: TensorFlow's Adam takes several operations for rows,
and one worker's mix with another's.
"""

import os
import time
from typing import Any, Dict, Iterator

import numpy as np
import tensorflow.compat.v1 as tf

from cluster import embedding, shards
from cluster.task import Task


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    def parse(lines: tf.Tensor) -> Dict[str, tf.Tensor]:
        pause = tf.py_func(lambda: _pause(args.get("pause_ms", 0)), [], tf.int64)
        number = tf.strings.to_number(lines, tf.int64) + tf.reshape(pause, [])
        return {"number": number, "worker": tf.fill([task.batch_size], tf.constant(task.worker_index, tf.int64))}

    files: Any = sorted(os.path.join(args["files"], name) for name in os.listdir(args["files"]))
    if args.get("arriving"):
        files = shards.arriving(os.path.join(args["files"], "*"))
    shuffle = args.get("shuffle", 0)
    if args.get("kind") == "records":
        return shards.records(task, files, words, parse, shuffle=shuffle)
    return shards.lines(task, files, parse, shuffle=shuffle, shard_bytes=args.get("shard_bytes", 2**20))


def _pause(milliseconds: float) -> np.int64:
    time.sleep(milliseconds / 1000)
    return np.int64(0)


def words(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from file.read().split()


def model(number: tf.Tensor, worker: tf.Tensor, args: Dict[str, Any]) -> tf.Tensor:
    place = worker * args["examples"] + number
    steps = tf.get_variable("steps", [], initializer=tf.zeros_initializer())
    if args.get("kind") == "embedding":
        table = embedding.table("ledger", 1, initializer=tf.zeros_initializer())
        return -embedding.lookup(table, place)[:, 0] - steps
    ledger = tf.get_variable("ledger", [args["workers"] * args["examples"]], initializer=tf.zeros_initializer())
    if args.get("kind") == "sparse":
        counted = tf.nn.embedding_lookup(ledger, place)
    else:
        counted = tf.reduce_sum(tf.one_hot(place, args["workers"] * args["examples"]) * ledger, 1)
    return -counted - steps


def optimizer(args: Dict[str, Any]) -> Dict[str, tf.train.Optimizer]:
    sign = tf.train.AdamOptimizer(1.0, beta1=0.0, beta2=0.0, epsilon=1e-12, use_locking=True)
    return {"ledger": sign, "steps": tf.train.GradientDescentOptimizer(1.0, use_locking=True)}


def counts(checkpoint: str, examples: int) -> np.ndarray:
    """Return how often each example was trained, by whichever worker, float64 [examples]."""
    reader = tf.train.load_checkpoint(checkpoint)
    found = np.zeros(examples)
    if reader.has_tensor("ledger"):
        return reader.get_tensor("ledger").reshape([-1, examples]).sum(0)
    name = "embeddings_ledger_1"
    newest: Dict[int, float] = {}  # an id may be in several parts
    for part in range(reader.get_tensor(f"{name}/parts")):
        ids, rows = (reader.get_tensor(f"{name}/part_{part}/{column}") for column in ("ids", "rows"))
        newest.update(zip(ids.tolist(), rows[:, 0].tolist()))
    for each, count in newest.items():
        found[each % examples] += count
    return found


def write(folder: str, examples: int, files: int, kind: str = "lines") -> None:
    """Write the numbers below ``examples`` into files of unlike sizes."""
    cuts = sorted(np.random.RandomState(files).choice(np.arange(1, examples), files - 1, replace=False).tolist())
    for index, (begin, end) in enumerate(zip([0, *cuts], [*cuts, examples])):
        with open(os.path.join(folder, f"{index:03d}.txt"), "w") as file:
            file.write("".join(f"{number}\n" for number in range(begin, end)))
