"""Make two numbers of all bytes of each worker's batch and of its gradients.

A worker reports both numbers to the chief in every step. They show the origin of a difference: the input, the
computation, or what comes after the computation.
"""

from typing import Any, List, Mapping, NamedTuple, Sequence

from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.task import Task

_BITS = 62


class WorkerDigests(NamedTuple):
    """The digests of all workers in one step, in their order."""

    batches: List[int]
    gradients: List[int]


def digests_of(numbers: Any) -> WorkerDigests:
    """Return the digests in a value of ``Digests.received``."""
    return WorkerDigests(*(column.tolist() for column in numbers.T))


def digest(tensors: Sequence[Any]) -> Any:
    """Return an int64 scalar that depends on every byte of these tensors."""
    each = [tf.strings.to_hash_bucket_fast(tf.io.serialize_tensor(tensor), 1 << _BITS) for tensor in tensors]
    together = tf.strings.join([tf.strings.as_string(number) for number in each], " ")
    return tf.strings.to_hash_bucket_fast(together, 1 << _BITS)


def batch_digest(batch: Mapping[str, Any]) -> Any:
    """Return the digest of a batch, in which tensors may be sparse, ragged or nested."""
    return digest(flat(batch))


def flat(batch: Mapping[str, Any]) -> List[Any]:
    """Return the tensors that a batch is made of: of a sparse one its indices, values and shape."""
    return list(tf.nest.flatten(dict(batch), expand_composites=True))


def gradient_digest(grads: Sequence[Any]) -> Any:
    """Return the digest of gradients, dense ones or of rows."""
    return digest(tensors_of(grads))


def tensors_of(grads: Sequence[Any]) -> List[Any]:
    """Return the tensors that gradients are made of: of one of rows its values and indices."""
    return [
        tensor
        for grad in grads
        for tensor in ([grad.values, grad.indices] if isinstance(grad, tf.IndexedSlices) else [grad])
    ]


class Digests:
    """A queue for each worker on ``ps:0``, in the current graph.

    Attributes:
      send: the operation by which this worker reports its step.
      received: int64 [workers, 2], waits until every worker has reported its next step (chief only, else None).
    """

    def __init__(self, task: Task, batch: Mapping[str, Any], grads: Sequence[Any]):
        own = tf.stack([batch_digest(batch), gradient_digest(grads)])
        with tf.device(ps_device(0)):
            self.send = self._queue(task.worker_index).enqueue(own)
            self.received: Any = None
            if task.is_chief:
                self.received = tf.stack([self._queue(worker).dequeue() for worker in range(task.num_workers)])

    @staticmethod
    def _queue(worker: int) -> Any:
        return tf.FIFOQueue(-1, tf.int64, shapes=[2], shared_name=f"verify/digests_of_{worker}")
