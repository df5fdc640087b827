"""TensorFlow 2.x's own way: ParameterServerStrategy, with its partitioner, Adagrad's rows updated by its own kernel.

A task under TF_CONFIG: ``python -m tests.benchmarks.recommend.coordinator JSON`` with the options of ``stock``. The
chief coordinates: its last line is the area under the ROC curve of held-out examples. A worker's share of the data is
in its file ``/tmp/worker``: the strategy does not tell a worker its number.
"""

import functools
import json
import sys
import threading
import time
from typing import Any, Dict, List

import numpy as np
import tensorflow as tf

from jobs import clicks
from tests.benchmarks.recommend import data
from tests.benchmarks.recommend.area import area

tf.compat.v1.enable_v2_behavior()  # cluster, which the networks come with, has turned it off

PARTITIONED = 10_000  # rows from which on a variable is
OWN_NUMBER = "/tmp/worker"


class Model:
    """Variables, made in the strategy's scope at their first use, and Adagrad's sums for them."""

    def __init__(self, strategy: Any, options: Dict[str, Any]):
        self.strategy, self.options = strategy, options
        self.variables: Dict[str, Any] = {}
        self.sums: Dict[str, List[Any]] = {}

    def variable(self, name: str, shape: List[int], first: Any) -> Any:
        """Return a variable by its name."""
        if name not in self.variables:
            made = functools.partial(first, shape, dtype=tf.float32)
            self.variables[name] = tf.Variable(made, shape=shape, dtype=tf.float32)
            self.sums[name] = [self._sum_of(each) for each in parts(self.variables[name])]
        return self.variables[name]

    def _sum_of(self, part: Any) -> Any:
        with self.strategy.extended.colocate_vars_with(part):
            return tf.Variable(tf.fill(part.shape, clicks.FIRST_SUM))

    def layer(self, name: str, x: Any, units: int) -> Any:
        weights = self.variable(f"{name}/weights", [int(x.shape[-1]), units], _glorot(int(x.shape[-1]), units))
        return x @ weights + self.variable(f"{name}/bias", [units], tf.zeros_initializer())

    def logits(self, batch: Dict[str, Any]) -> Any:
        """Return the logits of a batch [n]."""
        vectors = self.rows("deep", batch["categories"], self.options.get("width", 16))
        if self.options["network"] == "dlrm":
            return clicks.dlrm(batch["numbers"], vectors, self.options, self.layer)
        weights = self.rows("wide", batch["categories"], 1)
        return clicks.wide_and_deep(batch["numbers"], vectors, weights, self.options, self.layer)

    def rows(self, name: str, ids: Any, width: int) -> Any:
        """Return the rows of ids [n, columns], in tables of hashed ids: [n, columns, width]."""
        buckets, columns = self.options["buckets"], int(ids.shape[1])
        hashed = tf.math.floormod(ids, tf.constant(buckets, tf.int64))
        if self.options["joined"]:
            places = tf.reshape(hashed + buckets * tf.range(columns, dtype=tf.int64), [-1])
            return tf.reshape(self.look_up(name, places, buckets * columns, width), [-1, columns, width])
        found = [self.look_up(f"{name}{each}", hashed[:, each], buckets, width) for each in range(columns)]
        return tf.stack(found, 1)

    def look_up(self, name: str, places: Any, size: int, width: int) -> Any:
        first = tf.random_normal_initializer(0.0, width**-0.5) if width > 1 else tf.zeros_initializer()
        table = self.variable(name, [size, width], first)
        if not self.options["unique"]:
            return tf.nn.embedding_lookup(table, places)
        distinct, where = tf.unique(places)
        return tf.gather(tf.nn.embedding_lookup(table, distinct), where)

    def loss(self, batch: Dict[str, Any]) -> Any:
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=batch["label"], logits=self.logits(batch))
        return tf.reduce_mean(losses)

    def step(self, batch: Dict[str, Any]) -> None:
        """Apply Adagrad, as Keras has done: rows that a batch has twice once, with their gradients' sum."""
        variables = [part for each in self.variables.values() for part in parts(each)]
        sums = [part for each in self.sums.values() for part in each]
        with tf.GradientTape() as tape:
            loss = self.loss(batch)
        for grad, variable, total in zip(tape.gradient(loss, variables), variables, sums):
            _apply(grad, variable, total, tf.constant(clicks.rate(self.options)))


def parts(variable: Any) -> List[Any]:
    """Return what a variable consists of."""
    found = getattr(variable, "variables", None)
    return list(found) if found is not None else [variable]


def _apply(grad: Any, variable: Any, total: Any, rate: Any) -> None:
    common = {"var": variable.handle, "accum": total.handle, "lr": rate, "use_locking": True}
    if isinstance(grad, tf.IndexedSlices):
        rows, where = tf.unique(grad.indices)
        values = tf.math.unsorted_segment_sum(grad.values, where, tf.size(rows))
        tf.raw_ops.ResourceSparseApplyAdagrad(grad=values, indices=rows, **common)
    else:
        tf.raw_ops.ResourceApplyAdagrad(grad=grad, **common)


def _glorot(rows: int, columns: int) -> Any:
    limit = (6 / (rows + columns)) ** 0.5
    return tf.random_uniform_initializer(-limit, limit)


def train(resolver: Any, options: Dict[str, Any]) -> None:
    """Do the chief's part."""
    servers = resolver.cluster_spec().num_tasks("ps")

    def partitioner(shape: Any, dtype: Any, **_: Any) -> List[int]:
        return [servers if shape[0] >= PARTITIONED else 1, *[1] * (len(shape) - 1)]

    strategy = tf.distribute.ParameterServerStrategy(resolver, variable_partitioner=partitioner)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    model = Model(strategy, options)
    with strategy.scope():
        model.logits(next(iter(held_out(options))))
        done = tf.Variable(0, dtype=tf.int64)

    @tf.function
    def step(mine: Any) -> None:
        model.step(next(mine))
        done.assign_add(1)

    mine = iter(coordinator.create_per_worker_dataset(lambda: _share(options)))
    ended = threading.Event()
    teller = threading.Thread(target=_tell, args=(done, options, ended))
    teller.start()
    for _ in range(options["steps"] * options["workers"]):
        coordinator.schedule(step, args=(mine,))
    coordinator.join()
    ended.set()
    teller.join()
    print(f"step {options['steps']}/{options['steps']}", flush=True)
    found = [(batch["label"].numpy(), model.logits(batch).numpy()) for batch in held_out(options)]
    print(f"auc {area(*(np.concatenate(each) for each in zip(*found))):.5f}", flush=True)
    time.sleep(3600)  # it is ended from outside


def held_out(options: Dict[str, Any]) -> Any:
    """Return the batches that are never trained."""
    return data.batches(tf, options["held_out"], options["held_out_batch"]).take(options["held_out_batches"])


def _share(options: Dict[str, Any]) -> Any:
    number = tf.strings.to_number(tf.io.read_file(OWN_NUMBER), tf.int64)
    return data.batches(tf, options["data"], options["batch"], number, options["workers"])


def _tell(done: Any, options: Dict[str, Any], ended: Any) -> None:
    """Print every second how many batches of every worker have been trained."""
    while not ended.wait(1.0):
        number = int(done.numpy()) // options["workers"]
        if 0 < number < options["steps"]:
            print(f"step {number}/{options['steps']}", flush=True)


def main() -> None:
    """Run one task until it is ended from outside."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type == "chief":
        train(resolver, json.loads(sys.argv[1]))
    else:
        tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id).join()


if __name__ == "__main__":
    main()
