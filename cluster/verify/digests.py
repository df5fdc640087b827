"""Which batch each worker has had: a number made of all bytes of it, which the worker tells the chief in every step."""

from typing import Any, Mapping

from cluster.engine import tf
from cluster.placement import ps_device
from cluster.task import Task

_BITS = 62


def digest(batch: Mapping[str, Any]) -> Any:
    """Return an int64 scalar that depends on every byte of a batch, also of sparse, ragged and nested tensors."""
    tensors = tf.nest.flatten(dict(batch), expand_composites=True)
    each = [tf.strings.to_hash_bucket_fast(tf.io.serialize_tensor(tensor), 1 << _BITS) for tensor in tensors]
    together = tf.strings.join([tf.strings.as_string(number) for number in each], " ")
    return tf.strings.to_hash_bucket_fast(together, 1 << _BITS)


class Digests:
    """A queue for each worker on ``ps:0``, in the current graph.

    Attributes:
      tell: the operation by which this worker tells of the batch of its step.
      told: int64 [workers], waits until every worker has told of its next step (chief only, else None).
    """

    def __init__(self, task: Task, batch: Mapping[str, Any]):
        own = digest(batch)
        with tf.device(ps_device(0)):
            self.tell = self._queue(task.worker_index).enqueue(own)
            self.told: Any = None
            if task.is_chief:
                self.told = tf.stack([self._queue(worker).dequeue() for worker in range(task.num_workers)])

    @staticmethod
    def _queue(worker: int) -> Any:
        return tf.FIFOQueue(-1, tf.int64, shapes=(), shared_name=f"verify/batches_of_{worker}")
