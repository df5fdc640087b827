"""The reference: the job ``clicks`` in one process of plain TensorFlow, with ordinary variables.

Every id has its row before training begins. Keys and first values are worked out here in Python's own integers.
"""

import hashlib
import math
from typing import Any, Callable, Dict, List, Tuple

import numpy as np

from cluster.runtime.tf_compat import tf
from tests.support.training.jobs import clicks

_WORD = (1 << 64) - 1
TABLES: Dict[str, Tuple[str, int, Tuple[str, float, float, int]]] = {  # name: (feature, width, initializer)
    "user": ("user", clicks.WIDTH, ("uniform", -1.0, 1.0, 3)),
    "words": ("words", clicks.WIDTH, ("normal", 0.0, clicks.WIDTH**-0.5, 0)),
    "hours": ("hour", 1, ("constant", 0.0, 0.0, 0)),
}


def _number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def _mix(number: int) -> int:
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _WORD
    return number ^ number >> 31


def key(name: str, identity: int) -> int:
    return _mix((identity + _number(name)) & _WORD)


def marks(name: str) -> List[int]:
    """The ids of a table whose keys are those by which TensorFlow's dense hash table marks entries without one."""
    return [int(each) for each in ids_of(np.array([0x3C6EF372FE94F82B, 0x1F83D9ABFB41BD6B]), name)]


def ids_of(keys: np.ndarray, name: str) -> np.ndarray:
    """The ids whose keys these are."""
    found = keys.astype(np.int64).view(np.uint64)
    with np.errstate(over="ignore"):
        found = _unshifted(found, 31)
        for shift, factor in ((27, 0x94D049BB133111EB), (30, 0xBF58476D1CE4E5B9)):
            inverse = pow(factor, (1 << 62) - 1, 1 << 64)  # the group of odd numbers has 2^62 as an exponent
            found = _unshifted(found * np.uint64(inverse), shift)
        return (found - np.uint64(_number(name))).view(np.int64)


def _unshifted(numbers: np.ndarray, by: int) -> np.ndarray:
    found = numbers
    for _ in range(64 // by):
        found = numbers ^ found >> np.uint64(by)
    return found


def first_row(name: str, identity: int) -> List[float]:
    """The first value of an id's row."""
    _, width, initializer = TABLES[name]
    return first_row_of(name, width, initializer, identity)


def first_row_of(name: str, width: int, initializer: Tuple[str, float, float, int], identity: int) -> List[float]:
    """The same, of any table."""
    kind, low, high, seed = initializer
    start = _mix(key(name, identity) ^ _number(f"{name} {seed}"))
    draws = [_mix((start + place * 0x9E3779B97F4A7C15) & _WORD) for place in range(1, width + 1)]
    if kind == "constant":
        return [low] * width
    if kind == "uniform":
        half = (width + 1) // 2
        bits = [draw >> 40 for draw in draws[:half]] + [draw & 0xFFFFFF for draw in draws[: width - half]]
        return [low + (high - low) * (each / 2.0**24) for each in bits]
    totals = [sum(draw >> place & 0xFFFF for place in (0, 16, 32, 48)) for draw in draws]
    return [low + high * (total - 2 * 65535.0) / math.sqrt(4 * (2.0**32 - 1) / 12) for total in totals]


def identities(values: np.ndarray) -> np.ndarray:
    """Ids as int64: strings by TensorFlow's fingerprint."""
    if values.dtype.kind == "U":
        with tf.Graph().as_default(), tf.Session() as session:
            return np.asarray(session.run(tf.strings.to_hash_bucket_fast(tf.constant(values), (1 << 63) - 1)))
    return values.astype(np.int64)


def train(optimizer: str, steps: int, batch: int, examples: Dict[str, np.ndarray]) -> Dict[str, Dict[int, np.ndarray]]:
    """The row of every id of each table, and the weights under ``{"weights": {0: …}}``, after so many batches."""
    vocabularies = {name: np.unique(identities(examples[feature])) for name, (feature, _, _) in TABLES.items()}
    with tf.Graph().as_default(), tf.Session() as session:
        feeds: Dict[str, Any] = {
            name: tf.placeholder(tf.int64, [batch, *examples[feature].shape[1:]])
            for name, (feature, _, _) in TABLES.items()
        }
        label = tf.placeholder(tf.float32, [batch])
        first = {
            name: np.array([first_row(name, int(each)) for each in ids], np.float32)
            for name, ids in vocabularies.items()
        }
        tables = {name: tf.get_variable(name, initializer=value, use_resource=False) for name, value in first.items()}
        # A resource's value stays what a step has read, whichever gradient is applied first.
        weights = tf.get_variable("weights", [clicks.WIDTH], initializer=tf.ones_initializer(), use_resource=True)
        taken = {name: tf.nn.embedding_lookup(tables[name], feeds[name]) for name in TABLES}
        both = taken["user"] + tf.reduce_mean(taken["words"], 1)
        logits = tf.reduce_sum(both * weights, 1) + tf.squeeze(taken["hours"], 1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
        step = _lazy_adam(session, loss, tables, weights) if optimizer == "adam" else _plain(session, loss, optimizer)
        session.run(tf.global_variables_initializer())
        for number in range(steps):
            part = slice(number * batch, (number + 1) * batch)
            feed = {feeds[name]: np.searchsorted(vocabularies[name], identities(examples[feature][part]))
                    for name, (feature, _, _) in TABLES.items()}  # fmt: skip
            step({**feed, label: examples["y"][part]})
        found = {name: dict(zip(map(int, ids), session.run(tables[name]))) for name, ids in vocabularies.items()}
        return {**found, "weights": {0: session.run(weights)}}


def _plain(session: Any, loss: Any, optimizer: str) -> Callable[[Dict[Any, Any]], None]:
    operation = clicks.OPTIMIZERS[optimizer]().minimize(loss)
    return lambda feed: session.run(operation, feed)


def _lazy_adam(session: Any, loss: Any, tables: Dict[str, Any], weights: Any) -> Callable[[Dict[Any, Any]], None]:
    """Adam, of which only the rows in a batch take part: in numpy, for the tables."""
    rate, first, second, epsilon = 0.02, 0.9, 0.999, 1e-5
    grads = dict(zip(tables, tf.gradients(loss, list(tables.values()))))
    dense = tf.train.AdamOptimizer(rate, first, second, epsilon).minimize(loss, var_list=[weights])
    new = {name: tf.placeholder(tf.float32, each.shape) for name, each in tables.items()}
    write = tf.group(*[tf.assign(tables[name], value) for name, value in new.items()])
    moments = {name: np.zeros([2, *each.shape.as_list()], np.float32) for name, each in tables.items()}
    count = [0]

    def step(feed: Dict[Any, Any]) -> None:
        count[0] += 1
        values, found = session.run([tables, grads], feed)
        session.run(dense, feed)
        scaled = rate * math.sqrt(1 - second ** count[0]) / (1 - first ** count[0])
        for name, grad in found.items():
            rows = np.unique(grad.indices)
            total = np.zeros_like(values[name])
            np.add.at(total, grad.indices, grad.values)
            mean, square = moments[name]
            mean[rows] = first * mean[rows] + (1 - first) * total[rows]
            square[rows] = second * square[rows] + (1 - second) * total[rows] ** 2
            values[name][rows] -= scaled * mean[rows] / (np.sqrt(square[rows]) + epsilon)
        session.run(write, {new[name]: value for name, value in values.items()})

    return step


def rows(replica: Any, session: Any) -> Dict[str, Dict[int, np.ndarray]]:
    """The row of every id that has one, by table."""
    found: Dict[str, Dict[int, np.ndarray]] = {}
    (tables,) = replica.extensions
    for store in tables.stores.all:
        with replica.graph.as_default():
            part = session.run(store.live_part(tf.zeros([], tf.int64), store.places.count))
        for index, table in enumerate(store.all_tables):
            is_its = part["tables"] == index
            ids = ids_of(part["keys"][is_its], table.name)
            assert not set(ids) & set(found.get(table.name, {}))  # on another server
            found.setdefault(table.name, {}).update(zip(map(int, ids), part["rows"][is_its]))
    return found
