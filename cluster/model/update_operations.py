"""Operations that a model wants run beside its step: the moving averages of batch normalisation."""

from typing import Any, Sequence

from cluster.runtime.tf_compat import tf


def with_updates(value: Any, updates: Sequence[Any]) -> Any:
    """``value``, fetched in every step, once these update operations have run.

    Of all towers of all workers only the chief's first one has any: more would move one average several times a step.
    """
    with tf.control_dependencies(updates):
        return tf.identity(value) if updates else value
