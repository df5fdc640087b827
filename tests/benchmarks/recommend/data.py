"""Examples in the shape of Criteo's logs whose odds are known: 13 numbers, and 26 ids by Zipf's law.

A record is a batch: labels float32 [n], numbers float32 [n, 13], ids int64 [n, 26]. So reading takes no time that
matters. The odds follow from an effect of every id, from products of effects of neighbouring columns, and from numbers.
"""

from pathlib import Path
from typing import Any, Dict, Tuple

import numpy as np

NUMBERS, COLUMNS = 13, 26
IDS, EXPONENT = 1_000_000, 1.05  # of a column
_EFFECTS = 1 << 14


def examples(number: int, seed: int) -> Tuple[Any, Any, Any]:
    """Return labels, numbers and ids of so many examples; those of one seed are always the same."""
    random = np.random.RandomState(seed)
    ranks = zipf(random.uniform(size=[number, COLUMNS]))
    numbers = random.normal(size=[number, NUMBERS]).astype(np.float32)
    odds = logits(ranks, numbers)
    labels = (random.uniform(size=number) < 1 / (1 + np.exp(-odds))).astype(np.float32)
    return labels, numbers, scrambled(ranks)


def zipf(uniform: Any) -> Any:
    """Return ranks from 0, int64: rank r has a chance of about 1 / (r + 1) ** EXPONENT."""
    power = 1 - EXPONENT
    return np.minimum((1 + uniform * ((IDS + 1.0) ** power - 1)) ** (1 / power) - 1, IDS - 1).astype(np.int64)


def logits(ranks: Any, numbers: Any) -> Any:
    """Return the logarithms of the odds of examples, which do not depend on a seed."""
    random = np.random.RandomState(12345)
    effects = random.normal(size=[COLUMNS, _EFFECTS])
    of_ids = effects[np.arange(COLUMNS), (ranks * 40503) % _EFFECTS]
    pairs = (of_ids[:, :-1] * of_ids[:, 1:]).sum(1)
    return -1 + 0.25 * of_ids.sum(1) + 0.1 * pairs + 0.2 * numbers @ random.normal(size=NUMBERS)


def scrambled(ranks: Any) -> Any:
    """Return ids of 62 bits, other ones for each column, as a hash of a log's text would be."""
    mixed = (ranks * COLUMNS + np.arange(COLUMNS)).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return ((mixed ^ (mixed >> np.uint64(32))) >> np.uint64(2)).astype(np.int64)


def write(path: Path, batches: int, batch: int, seed: int) -> Path:
    """Write a file of so many records, unless it is there; return its path."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(".new")
        with partial.open("wb") as file:
            for record in range(batches):
                file.write(b"".join(each.tobytes() for each in examples(batch, seed + record)))
        partial.replace(path)
    return path


def record_bytes(batch: int) -> int:
    """Return the bytes of a record."""
    return batch * (4 + 4 * NUMBERS + 8 * COLUMNS)


def batches(tf: Any, path: str, batch: int, worker: Any = 0, workers: int = 1) -> Any:
    """Return a worker's share of a file's batches, again and again, as label, numbers and categories."""
    records = tf.data.FixedLengthRecordDataset(path, record_bytes(batch)).shard(workers, worker).repeat()
    return records.map(lambda record: parsed(tf, record, batch)).prefetch(2)


def joined(tf: Any, path: str, batch: int, count: int) -> Any:
    """Return what ``count`` workers read in a step as one batch."""
    one = batches(tf, path, batch).batch(count, drop_remainder=True)
    return one.map(lambda many: {key: tf.reshape(each, [count * batch, *each.shape[2:]]) for key, each in many.items()})


def parsed(tf: Any, record: Any, batch: int) -> Dict[str, Any]:
    """Return the examples of one record."""
    floats = batch * (1 + NUMBERS) * 4
    values = tf.io.decode_raw(tf.strings.substr(record, 0, floats), tf.float32)
    ids = tf.io.decode_raw(tf.strings.substr(record, floats, batch * 8 * COLUMNS), tf.int64)
    return {
        "label": tf.reshape(values[:batch], [batch]),
        "numbers": tf.reshape(values[batch:], [batch, NUMBERS]),
        "categories": tf.reshape(ids, [batch, COLUMNS]),
    }
