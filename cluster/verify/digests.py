"""Digests of each worker's batch and gradients, and the report that the worker sends to the chief in every step.

A digest is a number that depends on all bytes of its tensors. The two digests show where a difference began: in the
input, in the computation, or after the computation. A report also has the values that the chief cannot compute again.
"""

from typing import Any, List, Mapping, NamedTuple, Optional, Sequence

from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.task import Task

_BITS = 62


def digest(tensors: Sequence[Any]) -> Any:
    """Return an int64 scalar that depends on every byte of ``tensors``."""
    each = [tf.strings.to_hash_bucket_fast(tf.io.serialize_tensor(tensor), 1 << _BITS) for tensor in tensors]
    together = tf.strings.join([tf.strings.as_string(number) for number in each], " ")
    return tf.strings.to_hash_bucket_fast(together, 1 << _BITS)


def batch_digest(batch: Mapping[str, Any]) -> Any:
    """Return the digest of a batch, whose tensors may be sparse, ragged or nested."""
    return digest(flat(batch))


def flat(batch: Mapping[str, Any]) -> List[Any]:
    """Return the tensors of a batch; those of a sparse tensor are its indices, values and shape."""
    return list(tf.nest.flatten(dict(batch), expand_composites=True))


def gradient_digest(grads: Sequence[Any]) -> Any:
    """Return the digest of gradients, dense or sparse."""
    return digest(tensors_of(grads))


def tensors_of(grads: Sequence[Any]) -> List[Any]:
    """Return the tensors of gradients; those of a sparse gradient are its values and indices."""
    return [
        tensor
        for grad in grads
        for tensor in ([grad.values, grad.indices] if isinstance(grad, tf.IndexedSlices) else [grad])
    ]


def unlike_batch(step: int, found: Sequence[int], expected: Sequence[int]) -> Optional[str]:
    """Return a message about the first worker whose batch differs from the chief's copy; None if all are equal.

    Args:
      step: the number of the step that trains on the batches.
      found: the digests of the workers' batches.
      expected: the digests of the batches that the chief has read for the workers.
    """
    for worker, (one, other) in enumerate(zip(found, expected)):
        if one != other:
            return (
                f"worker {worker}'s batch of step {step} differs from the same batch read by the chief: its inputs do"
                " not return the same batches twice; give every shuffle a seed, keep the order of parallel reads,"
                " and put the same files on the chief's host"
            )
    return None


def unlike_gradient(found: Sequence[int], expected: Sequence[int], hosts: Sequence[str]) -> str:
    """Return the end of a message: the first worker whose gradient differs from the one process's, and advice.

    The one process, on the chief's host, computes each gradient from the worker's batch.

    Args:
      found: the digests of the workers' gradients.
      expected: the digests of the gradients that the one process has computed.
      hosts: the hosts of the workers, the chief's first.
    """
    workers = [worker for worker, (one, other) in enumerate(zip(found, expected)) if one != other]
    if not workers:
        return "; every worker computed the right gradient, so the sum or the update differs"
    is_here = hosts[workers[0]] == hosts[0]
    advice = (
        "look in the model for operations without a fixed order, because this worker is on the chief's own host"
        if is_here
        else "compare the processor and the libraries of its host with the chief's"
    )
    return f"; worker {workers[0]} computed other gradients than one process for the same batch and variables; {advice}"


class DigestReport(NamedTuple):
    """The report of one worker on one step.

    ``batch`` has the flat tensors of the worker's batch. If the chief reads the batches itself, ``batch`` is empty
    until the chief has done so. ``given`` has the values of each copy of the model that the chief cannot compute
    (``cluster.verify.givens``).
    """

    batch_digest: Any
    gradient_digest: Any
    batch: List[Any]
    given: List[List[Any]]


class DigestReports:
    """The queues on ``ps:0`` through which workers send their reports to the chief, in the current graph.

    Args:
      batch, grads: the batch and the gradients of this worker.
      given: the values of each copy of the worker's model that the chief cannot compute again.
      is_sent: whether reports include the batch. The chief cannot read it again if servers assign each shard to the
        first worker that asks.

    Attributes:
      structure: the argument ``batch`` if reports include the batch; else None.
      given: the argument ``given``.
      send: the operation with which this worker reports its step.
      received: the ``DigestReport`` of each worker, for the chief only. The operation waits until every worker has
        reported its next step.
    """

    def __init__(
        self, task: Task, batch: Mapping[str, Any], grads: Sequence[Any], given: Sequence[Sequence[Any]], is_sent: bool
    ):
        self.structure: Optional[Mapping[str, Any]] = batch if is_sent else None
        self.given = given
        digests = batch_digest(batch), gradient_digest(grads)
        self._own = DigestReport(*digests, flat(batch) if is_sent else [], [list(copy) for copy in given])
        self._types = [each.dtype for each in tf.nest.flatten(self._own)]
        with tf.device(ps_device(0)):
            self.send = self._queue(task.worker_index).enqueue(tf.nest.flatten(self._own))
            self.received = [self._dequeued(each) for each in range(task.num_workers)] if task.is_chief else []

    def _queue(self, worker: int) -> Any:
        return tf.FIFOQueue(-1, self._types, shared_name=f"verify/report_of_{worker}")

    def _dequeued(self, worker: int) -> Any:
        return tf.nest.pack_sequence_as(self._own, self._queue(worker).dequeue())
