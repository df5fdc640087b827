"""The rows in which workers note the place of a batch, and the variables of shards: the parts of ``shard_places``."""

from typing import Any, List, Optional

import numpy as np

from cluster.recommend.once.shard_files import Ticket
from cluster.runtime.server_state import kept
from cluster.runtime.tf_compat import tf
from cluster.variables.masters import SCOPE

FREE = -1  # in place of an owner
ENDED = 2  # of a row of progress, after the epochs and the records
STAMP, SHARD, EPOCH, BEGIN, END, IS_LAST = range(6)  # of a row of pending


def variable(name: str, shape: List[int], value: int) -> Any:
    """Return an int64 variable for the state of shards, on the current device.

    Args:
      name: the last part of the variable's name.
      value: the first value of every element.
    """
    return kept(f"{SCOPE}/shards/{name}", shape, tf.int64, value)


def write_if(is_so: Any, variable: Any, index: Any, value: Any) -> Any:
    """Make the operation that writes ``value`` to the row ``index`` of ``variable`` if ``is_so`` is true."""
    number = tf.cast(is_so, tf.int32)
    indices = tf.reshape(tf.cast(index, tf.int64), [1])[:number]
    return tf.scatter_update(variable, indices, value[tf.newaxis][:number]).op


def tickets_of(is_own: Any, progress: Any, first: Optional[int]) -> List[Ticket]:
    """Return a ticket for each shard that a worker has.

    The ticket of the shard ``first`` comes first. The others are sorted by epoch, record and index of the shard.

    Args:
      is_own: whether the worker has each shard, bool [shards].
      progress: the finished epochs, and the trained records of the next epoch, of each shard, int64 [shards, 2 or 3].
      first: the index of a shard; None to sort all tickets.
    """
    shards = np.flatnonzero(is_own).tolist()
    shards.sort(key=lambda shard: (shard != first, *progress[shard, :ENDED].tolist(), shard))
    return [Ticket(shard, *progress[shard, :ENDED].tolist()) for shard in shards]


def checks(rows: Any, progress: Any, stamp: Any) -> List[Any]:
    """Make the operations that fail unless the rows are those of one step, and each begins where the progress is."""
    shards = tf.maximum(rows[:, SHARD], 0)
    follows = tf.reduce_all(tf.equal(tf.gather(progress, shards)[:, :ENDED], rows[:, EPOCH : BEGIN + 1]), 1)
    is_empty = rows[:, SHARD] < 0
    taken = tf.boolean_mask(rows[:, SHARD], tf.logical_not(is_empty))
    rules = {
        "each shard belongs to one worker": tf.equal(tf.size(tf.unique(taken)[0]), tf.size(taken)),
        "every worker's batch belongs to this step": tf.equal(rows[:, STAMP], stamp),
        "every batch begins where the progress of its shard ends": tf.logical_or(is_empty, follows),
    }
    made = [tf.debugging.Assert(tf.reduce_all(rule), [f"shards: expected that {name}; found", rows], 100)
            for name, rule in rules.items()]  # fmt: skip
    return [*made, tf.debugging.Assert(tf.logical_not(tf.reduce_all(is_empty)), ["shards: a step has no records"])]
