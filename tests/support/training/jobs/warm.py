"""A job for tests: a model that is drawn by its seed, every first value of which is a known constant.

args: seed, optimizer, rate. It has variables in several scopes, one that is looked up by rows, one that its author has
cut, and a moving average that the model changes itself.
"""

from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import tensorflow.compat.v1 as tf

from cluster.task import Task

SCOPES = ("deep", "wide", "deeper")
ROWS, CUT, MOVING = "rows/all", "cut/kernel", "norm/mean"


class Slow(tf.train.Optimizer):  # type: ignore[misc]
    """Gradient descent beside a copy of each variable, made of the variable's first value."""

    def __init__(self, rate: float):
        super().__init__(False, "Slow")
        self._rate = rate

    def _create_slots(self, var_list: List[Any]) -> None:
        for each in var_list:
            self._get_or_make_slot(each, each.initialized_value(), "slow", "slow")

    def _apply_dense(self, grad: Any, var: Any) -> Any:
        return tf.assign_sub(var, self._rate * grad)

    def _apply_sparse(self, grad: Any, var: Any) -> Any:
        return tf.scatter_sub(var, grad.indices, self._rate * grad.values)


OPTIMIZERS: Dict[str, Callable[[float], tf.train.Optimizer]] = {
    "sgd": tf.train.GradientDescentOptimizer,
    "adam": tf.train.AdamOptimizer,
    "momentum": lambda rate: tf.train.MomentumOptimizer(rate, 0.9),
    "slow": Slow,
}


def variables(seed: int) -> Dict[str, Tuple[List[int], float]]:
    """Shape and first value of each variable."""
    random = np.random.RandomState(seed)
    names = [f"{scope}/{leaf}" for scope in SCOPES for leaf in range(random.randint(1, 4))]
    shapes = [random.randint(1, 7, random.randint(0, 4)).tolist() for _ in names]
    found = {name: (shape, number + 0.5) for number, (name, shape) in enumerate(zip(names, shapes))}
    rows, columns = random.randint(20, 60), random.randint(1, 5)
    return {**found, ROWS: ([rows, columns], -1.0), CUT: ([random.randint(4, 9), 3], -2.0), MOVING: ([], -3.0)}


def inputs(task: Task, args: Dict[str, Any]) -> tf.data.Dataset:
    data = tf.data.Dataset.from_tensor_slices({"x": np.arange(64, dtype=np.float32), "row": np.arange(64) % 20})
    return data.shard(task.num_workers, task.worker_index).repeat().batch(task.batch_size, drop_remainder=True)


def model(args: Dict[str, Any], x: tf.Tensor, row: tf.Tensor) -> tf.Tensor:
    made = {name: _variable(name, *each) for name, each in variables(int(args["seed"])).items()}
    moving = made.pop(MOVING)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign(moving, 0.5 * moving + 0.5 * tf.reduce_mean(x)))
    looked_up = tf.reduce_sum(tf.gather(made.pop(ROWS), row), 1)
    return looked_up * x + tf.add_n([tf.reduce_mean(tf.square(each)) for each in made.values()]) * x


def _variable(name: str, shape: List[int], first: float) -> Any:
    partitioner = tf.fixed_size_partitioner(2) if name == CUT else None
    made = tf.get_variable(name, shape, initializer=tf.constant_initializer(first), trainable=name != MOVING,
                           partitioner=partitioner)  # fmt: skip
    return tf.convert_to_tensor(made) if name == CUT else made


def optimizer(args: Dict[str, Any]) -> tf.train.Optimizer:
    return OPTIMIZERS[args["optimizer"]](float(args["rate"]))
