"""The rows of ids as a model gives them: dense, sparse or ragged, with weights, and filled up with padding.

A *bag* is what an example has of one feature: any number of ids. One row is made of a bag's rows as
``tf.nn.embedding_lookup_sparse`` makes it, or of the largest value of each column.
"""

from typing import Any, Callable, NamedTuple, Optional, Sequence

from cluster.recommend.tables.lookups import Table
from cluster.runtime.tensors import identities
from cluster.runtime.tf_compat import tf

COMBINERS = ("sum", "mean", "sqrtn", "max")
WEIGHTED = COMBINERS[:3]
_MEANS = {"sum": tf.ones_like, "mean": lambda number: 1 / number, "sqrtn": tf.math.rsqrt}


class Bags(NamedTuple):
    """The bags of a batch: ``ids`` [n], the ``example`` of each, int64 [n], and the ``number`` of examples, int64.

    ``weights`` is float32 [n], or None.
    """

    ids: Any
    example: Any
    number: Any
    weights: Any = None

    def without(self, padding: Any) -> "Bags":
        """Return the bags without the ids that are ``padding``, a tensor of one id."""
        places = _others(self.ids, padding)
        ids, example, weights = (
            None if each is None else tf.gather(each, places) for each in (self.ids, self.example, self.weights)
        )
        return Bags(ids, example, self.number, weights)

    def combined(self, rows: Any, combiner: str) -> Any:
        """Return one row for each example of the rows of ``ids`` [n, width]; zeros for an example without ids.

        Zeros also take the place of a mean whose weights add up to 0.
        """
        if combiner == "max":
            largest = tf.math.unsorted_segment_max(rows, self.example, self.number)
            has_ids = self._sums(tf.ones_like(self.example)) > 0
            return tf.where(tf.tile(has_ids, [1, tf.shape(rows)[1]]), largest, tf.zeros_like(largest))
        if self.weights is None:
            return tf.math.divide_no_nan(self._sums(rows), self._divisor(tf.ones_like(self.example), combiner))
        weighted = rows * self.weights[:, tf.newaxis]
        return tf.math.divide_no_nan(self._sums(weighted), self._divisor(self.weights, combiner))

    def _divisor(self, weights: Any, combiner: str) -> Any:
        """Return what to divide each example's sum by, [number, 1]."""
        if combiner == "sum":
            return tf.ones(tf.stack([self.number, 1]))
        weights = tf.cast(weights, tf.float32)
        return self._sums(weights) if combiner == "mean" else tf.sqrt(self._sums(weights * weights))

    def _sums(self, values: Any) -> Any:
        """Return the sum of each example's values, of which each has at least one axis."""
        values = values[:, tf.newaxis] if values.shape.ndims == 1 else values
        return tf.math.unsorted_segment_sum(values, self.example, self.number)


def of_sparse(ids: Any, weights: Any = None) -> Bags:
    """Return the bags of a ``tf.SparseTensor`` [batch, any], with the weights of another one."""
    given = None if weights is None else _in_place(weights.values, weights.indices, ids.indices)
    return Bags(ids.values, ids.indices[:, 0], ids.dense_shape[0], given)


def of_ragged(ids: Any, weights: Any = None) -> Bags:
    """Return the bags of a ``tf.RaggedTensor`` [batch, any], with the weights of another one."""
    given = None if weights is None else _in_place(weights.flat_values, weights.row_splits, ids.row_splits)
    return Bags(ids.flat_values, ids.value_rowids(), tf.cast(ids.nrows(), tf.int64), given)


def of_last_axis(ids: Any, weights: Any = None) -> Bags:
    """Return the bags of dense ids [..., m], of which each has ``m``."""
    size, each = tf.size(ids, out_type=tf.int64), tf.shape(ids, out_type=tf.int64)[-1]
    number = tf.reduce_prod(tf.shape(ids, out_type=tf.int64)[:-1])
    given = None if weights is None else tf.reshape(_in_place(weights, tf.shape(weights), tf.shape(ids)), [-1])
    return Bags(tf.reshape(ids, [-1]), tf.range(size) // tf.maximum(each, 1), number, given)


def spread(find: Any, ids: Any, padding: Optional[Any], width: int) -> Any:
    """Return the rows of ``ids`` [n], which ``find`` returns for ids; zeros for those that are ``padding``."""
    if padding is None:
        return find(ids)
    places = _others(ids, padding)
    shape = tf.stack([tf.size(ids, out_type=tf.int64), width])
    return tf.scatter_nd(places[:, tf.newaxis], find(tf.gather(ids, places)), shape)


def _others(ids: Any, padding: Any) -> Any:
    """Return the places of those ids that are not ``padding``, int64 [n]."""
    return tf.where(tf.not_equal(ids, padding))[:, 0]


def _in_place(weights: Any, places: Any, expected: Any) -> Any:
    """Return ``weights``, float32; the step fails if their places are not those of the ids.

    The weights depend on that comparison, and the ids do not: what looks up the ids ahead of their step needs no more.
    """
    message = "embedding.lookup: expected a weight for each id, found weights in other places"
    with tf.control_dependencies([tf.debugging.assert_equal(places, expected, message=message)]):
        return tf.cast(tf.identity(weights), tf.float32)


class RowFinder:
    """A lookup of a model.

    Args:
      find: a function from flat ids, int64 or strings [n], to their rows, float32 [n, width].
      padding: an id without a row, or None for none.
    """

    def __init__(self, table: Table, find: Callable[[Any], Any], padding: Any = None):
        self._table, self._find, self._padding = table, find, padding

    def rows(self, ids: Any, combiner: Optional[str], weights: Any) -> Any:
        """Return the rows of ``ids``, as ``cluster.embedding.lookup`` describes them. Raises ValueError."""
        if combiner is not None and combiner not in COMBINERS:
            raise self._unlike(f"a combiner, {_listed(COMBINERS)}", repr(combiner))
        if weights is not None and combiner not in WEIGHTED:
            raise self._unlike(f"a combiner for weights, {_listed(WEIGHTED)}", repr(combiner))
        if isinstance(ids, tf.RaggedTensor) and combiner is None:
            return ids.with_flat_values(self._spread(ids.flat_values))
        if isinstance(ids, (tf.SparseTensor, tf.RaggedTensor)):
            return self._of_bags(ids, combiner, weights)
        ids = tf.convert_to_tensor(ids)
        if combiner is None:
            return self._of_each(ids)
        return self._shaped(self._over_last_axis(ids, combiner, weights), tf.shape(ids)[:-1], ids.shape[:-1])

    def _of_bags(self, ids: Any, combiner: Optional[str], weights: Any) -> Any:
        """Return one row for each example of sparse or ragged ids [batch, any]."""
        if combiner is None:
            raise self._unlike(f"a combiner for sparse ids, {_listed(COMBINERS)}", "None")
        if ids.shape.ndims != 2:
            raise self._unlike("sparse or ragged ids of shape [batch, any]", f"shape {ids.shape}")
        if weights is not None and not isinstance(weights, type(ids)):
            raise self._unlike(f"weights like the ids, a {type(ids).__name__}", repr(weights))
        return self._combined((of_sparse if isinstance(ids, tf.SparseTensor) else of_ragged)(ids, weights), combiner)

    def _over_last_axis(self, ids: Any, combiner: str, weights: Any) -> Any:
        """Return one row for the ids in each last axis of dense ids, [n, width]."""
        if ids.shape.ndims == 0:
            raise self._unlike("ids with an axis to combine over", "none")
        if isinstance(weights, (tf.SparseTensor, tf.RaggedTensor)):
            raise self._unlike("weights like the ids, a dense tensor", repr(weights))
        if weights is not None or self._padding is not None or combiner not in _MEANS:
            weights = None if weights is None else tf.convert_to_tensor(weights)
            return self._combined(of_last_axis(ids, weights), combiner)
        number = tf.cast(tf.maximum(tf.shape(ids)[-1], 1), tf.float32)  # of each: so it takes fewer operations
        return tf.reduce_sum(self._of_each(ids), -2) * _MEANS[combiner](number)

    def _of_each(self, ids: Any) -> Any:
        """Return a row for each of dense ids."""
        return self._shaped(self._spread(tf.reshape(ids, [-1])), tf.shape(ids), ids.shape)

    def _combined(self, bags: Bags, combiner: str) -> Any:
        bags = bags._replace(ids=self._comparable(bags.ids))
        if self._padding is not None:
            bags = bags.without(self._padding_like(bags.ids))
        return self._known(bags.combined(self._find(bags.ids), combiner))

    def _spread(self, ids: Any) -> Any:
        """Return a row for each of flat ids; zeros for those that are the padding."""
        ids = self._comparable(ids)
        return self._known(spread(self._find, ids, self._padding_like(ids), self._table.width))

    def _known(self, rows: Any) -> Any:
        rows.set_shape([None, self._table.width])
        return rows

    def _shaped(self, rows: Any, axes: Any, known: Any) -> Any:
        """Return ``rows`` [n, width] with ``axes`` in the place of n, of which the shape ``known`` is known."""
        found = tf.reshape(rows, tf.concat([axes, [self._table.width]], 0))
        found.set_shape([*known.as_list(), self._table.width] if known.ndims is not None else None)
        return found

    def _comparable(self, ids: Any) -> Any:
        """Return flat ids of one of two types, with which the padding can be compared: int64 or strings."""
        if ids.dtype == tf.string:
            return ids
        if not ids.dtype.is_integer:
            raise self._unlike("ids that are integers or strings", ids.dtype.name)
        return identities(ids)

    def _padding_like(self, ids: Any) -> Any:
        """Return the padding as one of these flat ids, or None for none."""
        if self._padding is None:
            return None
        kind, name = (str, "a string") if ids.dtype == tf.string else (int, "an integer")
        if not isinstance(self._padding, kind) or isinstance(self._padding, bool):
            raise self._unlike(f"a padding like the ids, {name}", repr(self._padding))
        return tf.constant(self._padding, ids.dtype)

    def _unlike(self, expected: str, found: str) -> ValueError:
        return ValueError(f"embedding.lookup in {self._table.name!r}: expected {expected}, found {found}")


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
