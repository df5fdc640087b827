"""Examples from a formula: which ones a worker gets, in which order, is the same on every machine.

Of ``args``: ``width`` features an example has, ``rows`` of a table it may name, ``steps`` that are trained, and
``same``, the number of examples that every tower gets alike, or 0 for examples of its own, and ``fresh``, whether each
step has others than the one before.
"""

from typing import Any, Dict, Mapping

import numpy as np
import tensorflow.compat.v1 as tf

Args = Mapping[str, Any]
IDS = 3  # ids of an example


def dense(task: Any, args: Args) -> tf.data.Dataset:
    """Features ``x`` and a target ``y``."""
    return _batches(task, args, "x", "y")


def lookups(task: Any, args: Args) -> tf.data.Dataset:
    """``ids`` of rows, of which some are alike, and a target."""
    return _batches(task, args, "ids", "y")


def wide_and_deep(task: Any, args: Args) -> tf.data.Dataset:
    """Features, ids and a target."""
    return _batches(task, args, "x", "ids", "y")


def labelled(task: Any, args: Args) -> tf.data.Dataset:
    """Features and a class of four."""
    return _batches(task, args, "x", "label")


def double(task: Any, args: Args) -> tf.data.Dataset:
    """Features and a target in float64."""
    return dense(task, args).map(lambda batch: {name: tf.cast(value, tf.float64) for name, value in batch.items()})


def sparse(task: Any, args: Args) -> tf.data.Dataset:
    """``ids`` as a ``SparseTensor``, which lacks some of them."""
    return lookups(task, args).map(lambda batch: {"ids": _sparse(batch["ids"]), "y": batch["y"]})


def ragged(task: Any, args: Args) -> tf.data.Dataset:
    """``ids`` as a ``RaggedTensor``: one, two or three of them."""

    def shorten(batch: Dict[str, Any]) -> Dict[str, Any]:
        lengths = tf.cast(batch["ids"][:, 0] % IDS + 1, tf.int64)
        return {"ids": tf.RaggedTensor.from_tensor(batch["ids"], lengths), "y": batch["y"]}

    return lookups(task, args).map(shorten)


def nested(task: Any, args: Args) -> tf.data.Dataset:
    """Features and ids in structures of structures."""

    def nest(batch: Dict[str, Any]) -> Dict[str, Any]:
        return {"features": {"dense": batch["x"], "pair": (batch["ids"][:, 0], batch["ids"][:, 1])}, "y": batch["y"]}

    return wide_and_deep(task, args).map(nest)


def words(task: Any, args: Args) -> tf.data.Dataset:
    """A word of four, as text, and a target."""
    return _batches(task, args, "word", "y")


def examples(number: int, width: int, rows: int) -> Dict[str, np.ndarray]:
    """The first ``number`` examples."""
    index = np.arange(number)
    x = np.sin(0.9 * np.outer(index + 1, np.arange(width) + 1) + index[:, None]).astype(np.float32)
    ids = np.stack([(7 * index + 3) % rows, (5 * index + 1) % rows, (index // 2) % rows], 1).astype(np.int32)
    return {
        "x": x,
        "y": np.cos(1.3 * index).astype(np.float32) + 0.5,
        "ids": ids,
        "label": (index * 5 % 7 % 4).astype(np.int32),
        "word": np.array(["red", "green", "blue", "black"])[index * 3 % 7 % 4],
    }


def _batches(task: Any, args: Args, *names: str) -> tf.data.Dataset:
    number = int(args["steps"]) * task.batch_size * task.num_workers
    order = _order(task, args, number)
    values = examples(number, int(args["width"]), int(args["rows"]))
    data = tf.data.Dataset.from_tensor_slices({name: values[name][order] for name in names})
    return data.repeat().batch(task.batch_size, drop_remainder=True)


def _order(task: Any, args: Args, number: int) -> np.ndarray:
    """The examples of a worker: every n-th, or those that all towers have alike."""
    same = int(args["same"])
    if not same:
        return np.arange(number)[task.worker_index :: task.num_workers]
    step, position = np.divmod(np.arange(int(args["steps"]) * task.batch_size), task.batch_size)
    return step * same * int(args["fresh"]) + position % same


def _sparse(ids: Any) -> Any:
    """Leaves out every third id, so that each example keeps two of its own."""
    kept = tf.where(tf.not_equal((ids + tf.range(IDS)) % 3, 0) | tf.equal(tf.range(IDS), 0))
    return tf.SparseTensor(kept, tf.gather_nd(ids, kept), tf.shape(ids, out_type=tf.int64))
