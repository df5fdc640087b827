"""Weigh the mean loss of each copy of the model by the copy's part (its weight) in a step's mean loss.

A step's gradient is the gradient of the mean loss over all examples of all workers. The servers add the gradients of
workers. So each worker computes, for every copy of the model, the gradient of the copy's mean loss times its weight.
The sum over all copies equals the gradient in one process. This includes custom gradients that depend on the size of
the gradient that they receive.

    all workers have equally many examples  the part of a worker is 1 / N, where a step needs N workers
    workers have unlike numbers of towers   the part of a worker is its share, which it computes when it joins
    batches vary in size                    the part of a worker is its number of examples, divided by the number in
                                              N full batches; the servers divide by the sum of all parts
    some examples do not count              as for batches that vary, with the number of the examples that count
"""

from typing import Any, List, Optional, Tuple

from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import wait_for
from cluster.task import Task, Train


class Parts:
    """The weight of each loss in a step's mean loss, computed in the current graph.

    Args:
      number: the number of losses that a worker has in a step: its towers times the batches that it accumulates.

    Attributes:
      shares: if workers may have unlike numbers of examples, the ``Shares`` to ``settle`` before the first step; else
        None.
    """

    def __init__(self, task: Task, train: Train, number: int):
        self._train, self._number = train, number
        self._required = (
            1 if train.mode == "async" or train.sync == "stock" else task.num_workers - train.backup_workers
        )
        self._weights: List[Any] = []
        self._sizes: List[Any] = []
        self._counts = train.mode == "sync" and train.sync != "stock" and task.num_workers > 1
        self.shares = Shares(task, task.batch_size) if self._counts and train.towers == "auto" else None

    @property
    def weight(self) -> Any:
        """Return the sum of this worker's weights, float32, if the servers must divide by it; else None."""
        return tf.add_n(self._weights) if self._weights else None

    @property
    def examples(self) -> Any:
        """Return the number of examples in this worker's batch of a step, if the number varies; else None."""
        return tf.add_n(self._sizes) if self._sizes else None

    def weigh(self, loss: Any, counts: Any = None) -> Tuple[Any, Any]:
        """Return the mean of ``loss``, and the weight of this mean: its part of the step's mean loss.

        Args:
          loss: [batch], the loss of each example.
          counts: float32 [batch], 1 for an example that counts and 0 for another; None if all count.

        Returns:
          Two scalars. If no example counts, both are 0. The weight may be a Python number, or None for 1.
        """
        if counts is not None:
            counted = loss * tf.cast(counts, loss.dtype)
            return self._weigh_by_number(counted, tf.reduce_sum(counts))
        if loss.shape.num_elements() is not None:
            return tf.reduce_mean(loss), self._fixed()
        if self._counts:
            return self._weigh_by_number(loss, tf.cast(tf.size(loss), tf.float32))
        self._sizes.append(tf.size(loss))
        return _mean(loss, tf.size(loss)), self._fixed()

    def _weigh_by_number(self, loss: Any, number: Any) -> Tuple[Any, Any]:
        self._sizes.append(tf.cast(number, tf.int32))
        self._weights.append(number / (self._train.tower_batch_size * self._train.accumulate * self._required))
        return _mean(loss, number), self._weights[-1]

    def _fixed(self) -> Any:
        """Return the weight where all batches of this worker have the same size."""
        part = None if self._number * self._required == 1 else 1 / (self._number * self._required)
        if self.shares is None:
            return part
        return self.shares.share if part is None else self.shares.share * part


def _mean(loss: Any, number: Any) -> Any:
    """Return the mean of the losses of so many examples, 0 for none."""
    return tf.reduce_sum(loss) / tf.cast(tf.maximum(number, 1), loss.dtype)


class Shares:
    """One worker's share: the factor for its loss where workers have unlike numbers of examples.

    Every worker writes its number of examples into a table on ``ps:0``. Create the object in the worker's graph.

    Args:
      examples: the number of examples in a batch of this worker.

    ``share``: a float32 scalar on the worker: ``examples`` divided by the mean number of all workers. So it is 1 where
    all numbers are equal.
    """

    def __init__(self, task: Task, examples: int):
        self._task, self._examples = task, examples
        with tf.variable_scope("shares"):
            kept = tf.get_variable("share", [], initializer=tf.ones_initializer(), trainable=False, collections=[])
        self.share = kept.read_value()
        self._number = tf.placeholder(tf.float32, [])
        self._keep = kept.assign(self._number)
        with tf.device(ps_device(0)):
            name = f"examples_of_{task.num_workers}_workers"
            table = tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name=name)
            worker, own = tf.constant([task.worker_index], tf.int64), tf.constant([examples], tf.int64)
            self._tell = tf.raw_ops.LookupTableInsertV2(table_handle=table, keys=worker, values=own)
            self._sizes = tf.raw_ops.LookupTableExportV2(table_handle=table, Tkeys=tf.int64, Tvalues=tf.int64).values

    def settle(self, session: Any) -> None:
        """Write this worker's number of examples, wait for the numbers of all workers, and set ``share``.

        Raises:
          TimeoutError: another worker has not written its number in time.
        """
        session.run(self._tell)
        wait_for("every worker's number of examples", lambda: self._all(session) is not None)
        total = self._all(session)
        session.run(self._keep, {self._number: self._examples * self._task.num_workers / (total or 1)})

    def _all(self, session: Any) -> Optional[int]:
        sizes = session.run(self._sizes)
        return int(sizes.sum()) if len(sizes) == self._task.num_workers else None
