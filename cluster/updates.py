"""Operations that a model wants run beside its step: the moving averages of batch normalisation."""

from typing import Any

from cluster.engine import tf


def with_updates(value: Any, is_chief: bool) -> Any:
    """``value``, fetched in every step, once the update operations of that step have run.

    Of all towers of all workers only the chief's first one runs them: the averages live on
    the parameter servers, so more would move them several times a step. Those that an
    evaluation adds to the graph later are not among them.
    """
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope="tower_0/") if is_chief else []
    with tf.control_dependencies(updates):
        return tf.identity(value) if updates else value
