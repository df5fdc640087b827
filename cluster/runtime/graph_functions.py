"""Computations that are one operation of a graph wherever they are called: the operations are the function's own."""

from typing import Any, Callable, Dict, Tuple

from cluster.runtime.tf_compat import tf


def call(name: str, compute: Callable[..., Any], *tensors: Any) -> Any:
    """Return what ``compute`` makes of tensors, by a function that the graph has once under this name.

    It may use its arguments only, and returns one tensor. The call is on the current device.
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
