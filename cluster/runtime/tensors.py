"""Small functions of tensors, made of few operations of a graph."""

from typing import Any, Callable, Dict, Tuple

from cluster.runtime.tf_compat import tf

_STRINGS = (1 << 63) - 1  # fingerprints of strings: so many


def identities(ids: Any) -> Any:
    """Return integers or strings of any shape as int64; a string as its 63-bit fingerprint."""
    if ids.dtype == tf.string:
        return tf.strings.to_hash_bucket_fast(ids, _STRINGS)
    return tf.cast(ids, tf.int64)


def where_true(mask: Any) -> Any:
    """Return the places of a mask [n] that are true, int64 [m]: to gather by, with fewer operations than a mask."""
    return tf.reshape(tf.where(mask), [-1])


def call(name: str, compute: Callable[..., Any], *tensors: Any) -> Any:
    """Return what ``compute`` makes of tensors, by a function that the graph has once under this name.

    A call is one operation, on the current device. ``compute`` may use its arguments only, and returns one tensor.
    """
    specs = tuple(tf.TensorSpec([None] * (each.shape.ndims or 0), each.dtype.base_dtype) for each in tensors)
    known = _functions(tf.get_default_graph())
    if (name, specs) not in known:
        with tf.device(None), tf.control_dependencies(None):
            known[name, specs] = tf.wrap_function(compute, list(specs))
    return known[name, specs](*tensors)


def _functions(graph: Any) -> Dict[Tuple[str, Any], Callable[..., Any]]:
    held = graph.get_collection_ref("functions_by_name")
    if not held:
        held.append({})
    found: Dict[Tuple[str, Any], Callable[..., Any]] = held[0]
    return found
