"""Digests of each worker's batch and gradients, and the report that it sends the chief in every step.

A digest is a number of all bytes. Both show the origin of a difference: the input, the computation, or what comes after
the computation. A report also has what the chief cannot compute once more.
"""

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.task import Task

_BITS = 62


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


class DigestReport(NamedTuple):
    """The report of one worker on one step.

    ``batch`` has the tensors of its batch, flat, none if the chief reads that; ``given`` those of each copy of the
    model (``cluster.verify.givens``).
    """

    batch_digest: Any
    gradient_digest: Any
    batch: List[Any]
    given: List[List[Any]]


class DigestReports:
    """A queue for each worker on ``ps:0``, in the current graph.

    Args:
      batch, grads: of this worker.
      given: the values of each copy of its model.
      is_sent: whether the chief needs the batch: the servers give a shard to the worker that asks first.

    Attributes:
      structure: the batch, where it is sent; else None.
      given: the same.
      send: the operation by which this worker reports its step.
      received: the ``DigestReport`` of each worker, waits until every worker has reported its next step (chief only).
    """

    def __init__(
        self, task: Task, batch: Mapping[str, Any], grads: Sequence[Any], given: Sequence[Sequence[Any]], is_sent: bool
    ):
        self.structure: Optional[Mapping[str, Any]] = batch if is_sent else None
        self.given, self._batch = given, flat(batch) if is_sent else []
        own = [batch_digest(batch), gradient_digest(grads), *self._batch, *(each for copy in given for each in copy)]
        self._types = [each.dtype for each in own]
        with tf.device(ps_device(0)):
            self.send = self._queue(task.worker_index).enqueue(own)
            self.received = [self._dequeued(each) for each in range(task.num_workers)] if task.is_chief else []

    def _queue(self, worker: int) -> Any:
        return tf.FIFOQueue(-1, self._types, shared_name=f"verify/report_of_{worker}")

    def _dequeued(self, worker: int) -> DigestReport:
        values = iter(self._queue(worker).dequeue())
        digests, batch = (next(values), next(values)), [next(values) for _ in self._batch]
        return DigestReport(*digests, batch, [[next(values) for _ in copy] for copy in self.given])
