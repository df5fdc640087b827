"""A feature column whose rows are those of a table, in the place of ``tf.feature_column.embedding_column``.

TensorFlow's classes of columns are not public, so they are found as the classes of a column that it has made. The
categorical column itself makes the ids of a batch: it hashes, crosses, weighs, or reads a vocabulary.
"""

from functools import lru_cache
from typing import Any, Callable, List, Optional

from cluster.runtime.tf_compat import tf

_CATEGORICAL = {"CategoricalColumn", "_CategoricalColumn"}
_SEQUENCE = {"SequenceCategoricalColumn", "_SequenceCategoricalColumn"}


def refusal(column: Any) -> Optional[str]:
    """Return why ``column`` cannot give the ids of a table's column, or None if it can."""
    classes = {each.__name__ for each in type(column).__mro__}
    if classes & _SEQUENCE:
        return "expected no sequence, of which embedding.lookup gives ragged rows"
    return None if classes & _CATEGORICAL else "expected one of tf.feature_column.categorical_column_with_…"


def dense_column(categorical: Any, width: int, look_up: Callable[[Any, Any], Any], only_above_0: bool) -> Any:
    """Return a dense column of ``width`` numbers: what ``look_up`` returns for sparse ids and their weights, or None.

    As in ``embedding_column``, ``look_up`` gets no negative id, and with ``only_above_0`` no weight up to 0.
    """
    return _column_class()(categorical, width, look_up, only_above_0)


@lru_cache(maxsize=None)
def _column_class() -> Any:
    dense = [each for each in type(tf.feature_column.numeric_column("any")).__mro__ if "DenseColumn" in each.__name__]

    class TableColumn(*dense):  # type: ignore[misc]
        _is_v2_column = True

        def __init__(self, categorical: Any, width: int, look_up: Callable[[Any, Any], Any], only_above_0: bool):
            self._categorical, self._look_up, self._only_above_0 = categorical, look_up, only_above_0
            self._width = width

        @property
        def name(self) -> str:
            return f"{self._categorical.name}_embedding"

        @property
        def parents(self) -> List[Any]:
            return [self._categorical]

        @property
        def variable_shape(self) -> Any:
            return tf.TensorShape([self._width])

        @property
        def parse_example_spec(self) -> Any:
            return self._categorical.parse_example_spec

        _variable_shape, _parse_example_spec = variable_shape, parse_example_spec

        def transform_feature(self, cache: Any, manager: Any) -> Any:
            return cache.get(self._categorical, manager)

        def _transform_feature(self, inputs: Any) -> Any:
            return inputs.get(self._categorical)

        def get_dense_tensor(self, cache: Any, manager: Any) -> Any:
            is_trained = getattr(manager, "_trainable", True)
            return self._rows(self._categorical.get_sparse_tensors(cache, manager), is_trained)

        def _get_dense_tensor(self, inputs: Any, weight_collections: Any = None, trainable: Any = None) -> Any:
            return self._rows(self._categorical._get_sparse_tensors(inputs), trainable is not False)

        def _rows(self, found: Any, is_trained: bool) -> Any:
            ids, weights = found.id_tensor, found.weight_tensor
            counts = ids.values >= 0
            if weights is not None:
                counts &= (weights.values > 0) | (not self._only_above_0)
                weights = tf.sparse.retain(weights, counts)
            rows = self._look_up(tf.sparse.retain(ids, counts), weights)
            return rows if is_trained else tf.stop_gradient(rows)

        def _get_config(self) -> Any:
            raise NotImplementedError(f"{self.name}: expected a column that can be described by values")

    return TableColumn
