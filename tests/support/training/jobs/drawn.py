"""A job for tests: a model that is drawn by its seed, of several embedding tables, looked up in several ways.

args: seed, steps (how many batches there are before they repeat), optimizer, dense (whether there is a dense part),
also (further ids that come among the drawn ones).
"""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence

import numpy as np
import tensorflow.compat.v1 as tf

from cluster import embedding
from cluster.task import Task
from cluster.updates.grouped import Grouped

Lookup = Callable[[embedding.Table, Any, Any], tf.Tensor]
BAG = 3  # ids of an example, at most
KINDS = ("one", "bag", "sparse", "word")
OPTIMIZERS: Dict[str, Callable[[], tf.train.Optimizer]] = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.3),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adagrad": lambda: tf.train.AdagradOptimizer(0.2),
    "grouped": lambda: Grouped({"wide": tf.train.FtrlOptimizer(0.2, l2_regularization_strength=0.01),
                                "": tf.train.AdagradOptimizer(0.2)}),
}  # fmt: skip


class Feature(NamedTuple):
    """Ids of one kind, and the tables in which they are looked up."""

    name: str
    kind: str
    combiner: str
    tables: List[embedding.Table]


def tables(seed: int) -> List[embedding.Table]:
    random, rules = np.random.RandomState(seed), np.random.RandomState(seed + 500)
    initializers = [None, tf.random_uniform_initializer(-1.0, 1.0, seed=seed), tf.constant_initializer(0.25)]
    return [
        embedding.table(f"{'wide' if place % 2 else 'deep'}/{place}", int(random.choice([1, 2, 4])),
                        initializer=initializers[random.randint(3)],
                        admit=embedding.after(int(rules.randint(2, 4))) if rules.randint(2) else None,
                        expire=embedding.unused_for(steps=int(rules.randint(1, 3))) if rules.randint(2) else None)
        for place in range(random.randint(1, 5))
    ]  # fmt: skip


def features(seed: int) -> List[Feature]:
    """Every table has a feature, some have two, and some features two tables."""
    random = np.random.RandomState(seed)
    known = tables(seed)
    pairs = [[known[place] for place in random.randint(0, len(known), 2)] for _ in range(random.randint(0, 3))]
    used = [[each] for each in known] + pairs
    return [Feature(f"x{place}", str(random.choice(KINDS)), str(random.choice(["sum", "mean", "sqrtn"])), some)
            for place, some in enumerate(used)]  # fmt: skip


def examples(args: Dict[str, Any], number: int) -> Dict[str, np.ndarray]:
    seed, also = int(args["seed"]), args["also"]
    random = np.random.RandomState(seed)
    values: Dict[str, np.ndarray] = {"y": random.randint(0, 2, number).astype(np.float32)}
    for each in features(seed):
        ids = random.zipf(1.3, [number, BAG]).astype(np.uint64).view(np.int64) % 50
        if each.kind == "one":
            values[each.name] = (ids[:, 0] << int(random.randint(0, 50))).astype(np.int64)
        elif each.kind == "word":
            values[each.name] = np.array([f"{word}" for word in ids[:, 0]])
        else:  # in a sparse tensor, a place with 0 has none
            values[each.name] = ids * random.randint(-1 if each.kind == "bag" else 0, 2, ids.shape)
        if each.kind in ("one", "bag"):
            values[each.name].flat[number // 3 :: 7] = np.resize(also, values[each.name].flat[number // 3 :: 7].shape)
    return values


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    values = examples(args, int(args["steps"]) * task.batch_size * task.num_workers)
    data = tf.data.Dataset.from_tensor_slices(values).shard(task.num_workers, task.worker_index)
    return data.repeat().batch(task.batch_size, drop_remainder=True)


def losses(seed: int, dense: bool, lookup: Lookup, batch: Dict[str, tf.Tensor]) -> tf.Tensor:
    total = tf.zeros_like(batch["y"])
    for each in features(seed):
        for place, table in enumerate(each.tables):
            rows = lookup(table, *_ids(each, batch[each.name]))
            total += tf.reduce_sum(rows, 1)
            if dense:
                weights = tf.get_variable(f"{each.name}/{place}", [table.width], initializer=tf.ones_initializer())
                total += tf.reduce_sum(tf.tanh(rows) * weights, 1)
    if seed % 2:  # which number of a row is the largest is an id of another table
        first, last = tables(seed)[0], tables(seed)[-1]
        top = tf.argmax(lookup(first, *_ids(features(seed)[0], batch["x0"])), 1)
        total += tf.reduce_sum(lookup(last, top, None), 1)
    return tf.nn.sigmoid_cross_entropy_with_logits(labels=batch["y"], logits=total)


def _ids(feature: Feature, values: tf.Tensor) -> Sequence[Any]:
    if feature.kind in ("one", "word"):
        return values, None
    if feature.kind == "bag":
        return values, feature.combiner
    places = tf.where(tf.not_equal(values, 0))
    return tf.SparseTensor(places, tf.gather_nd(values, places), tf.shape(values, out_type=tf.int64)), feature.combiner


def model(args: Dict[str, Any], **batch: tf.Tensor) -> tf.Tensor:
    return losses(int(args["seed"]), bool(args["dense"]), embedding.lookup, batch)


def evaluate(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    return tf.data.Dataset.from_tensor_slices(examples(args, 32)).batch(16)


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return OPTIMIZERS[args["optimizer"]]()
