"""Make two numbers of all bytes of each worker's batch and of its gradients.

Both show the origin of a difference: the input, the computation, or what comes after the computation.
"""

from typing import Any, List, Mapping, Sequence

from cluster.runtime.tf_compat import tf

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
