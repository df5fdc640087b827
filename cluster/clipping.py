"""Gradients that are not too large together."""

from typing import Any, List, Sequence, Tuple

from cluster.engine import tf


def clipped(grads_and_vars: Sequence[Tuple[Any, Any]], clip_norm: Any) -> List[Tuple[Any, Any]]:
    """The gradients scaled down so that their global norm is at most ``clip_norm``; None leaves them."""
    if clip_norm is None:
        return list(grads_and_vars)
    grads, _ = tf.clip_by_global_norm([grad for grad, _ in grads_and_vars], clip_norm)
    return [(grad, variable) for grad, (_, variable) in zip(grads, grads_and_vars)]
