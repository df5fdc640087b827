"""A Keras layer that looks up ids in a table, for Keras 2 and Keras 3."""

from functools import lru_cache
from typing import Any, Callable, Optional

from cluster.runtime.tf_compat import is_of_tensorflow, tf


def layer(look_up: Callable[[Any], Any], masked: Optional[int] = None, name: Optional[str] = None) -> Any:
    """Return a layer whose result is that of ``look_up`` for its input.

    Its mask, which Keras gives to the layers that come next, leaves out the id ``masked``. If the layer's ``trainable``
    is False, no gradient reaches the rows.
    """
    return _layer_class()(look_up, masked, name=name)


@lru_cache(maxsize=None)
def _layer_class() -> Any:
    """Return the class, which is made with the first layer: Keras takes its time to load."""

    class TableRows(tf.keras.layers.Layer):  # type: ignore[misc]
        def __init__(self, look_up: Callable[[Any], Any], masked: Optional[int], name: Optional[str]):
            super().__init__(name=name)
            # Keras 2 would translate all functions below this one, which have no Python to translate.
            self._look_up, self._masked = tf.autograph.experimental.do_not_convert(look_up), masked
            self.supports_masking = True

        def call(self, inputs: Any) -> Any:
            rows = self._look_up(inputs)
            return rows if self.trainable else tf.nest.map_structure(tf.stop_gradient, rows, expand_composites=True)

        def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
            return None if self._masked is None else getattr(tf.keras, "ops", tf).not_equal(inputs, self._masked)

    return TableRows


def is_nothing(regularizer: Any) -> bool:
    """Return whether one of Keras's regularizers adds nothing to a loss: None, or with factors of 0."""
    return regularizer is None or (is_of_tensorflow(regularizer) and not any(regularizer.get_config().values()))
