"""The rows of ids as a model gives them: dense, sparse or ragged, with weights, and filled up with padding.

A *bag* is what an example has of one feature: any number of ids. One row is made of a bag's rows as
``tf.nn.embedding_lookup_sparse`` makes it, or of the largest value of each column.
"""

from typing import Any, Callable, NamedTuple, Optional, Sequence

from cluster.recommend.tables.lookups import Table
from cluster.recommend.tables.splitmix import signed
from cluster.runtime.tensors import identities, where_true
from cluster.runtime.tf_compat import tf

COMBINERS = ("sum", "mean", "sqrtn", "max")
WEIGHTED = COMBINERS[:3]


class Bags(NamedTuple):
    """The bags of a batch: ``ids`` [n], the ``example`` of each, int64 [n], and the ``number`` of examples.

    ``weights`` is float32 [n], or None.
    """

    ids: Any
    example: Any
    number: Any
    weights: Any = None

    def without(self, padding: Any) -> "Bags":
        """Return the bags without the ids that are ``padding``, a tensor of one id."""
        places = where_true(tf.not_equal(self.ids, padding))
        weights = None if self.weights is None else tf.gather(self.weights, places)
        return Bags(tf.gather(self.ids, places), tf.gather(self.example, places), self.number, weights)

    def combined(self, rows: Any, combiner: str) -> Any:
        """Return one row for each example of the rows of ``ids`` [n, width]; zeros for an example without ids.

        Zeros also take the place of a mean whose weights add up to 0.
        """
        if combiner == "max":
            largest = tf.math.unsorted_segment_max(rows, self.example, self.number)
            return tf.where(self._sums(tf.ones_like(self.example)) > 0, largest, tf.zeros_like(largest))
        total = self._sums(rows if self.weights is None else rows * self.weights[:, tf.newaxis])
        return total if combiner == "sum" else tf.math.divide_no_nan(total, self._divisor(combiner))

    def _divisor(self, combiner: str) -> Any:
        """Return what to divide each example's sum by, [number, 1]."""
        weights = tf.ones_like(self.example, tf.float32) if self.weights is None else self.weights
        if combiner == "mean":
            return self._sums(weights)[:, tf.newaxis]
        squares = self._sums(weights if self.weights is None else tf.square(weights))
        return tf.sqrt(squares)[:, tf.newaxis]

    def _sums(self, values: Any) -> Any:
        """Return the sum of each example's values."""
        return tf.math.unsorted_segment_sum(values, self.example, self.number)


def of_sparse(ids: Any, weights: Any = None) -> Bags:
    """Return the bags of a ``tf.SparseTensor`` [batch, any], with the weights of another one."""
    given = None if weights is None else _in_place(weights.values, weights.indices, ids.indices)
    return Bags(ids.values, ids.indices[:, 0], ids.dense_shape[0], given)


def of_ragged(ids: Any, weights: Any = None) -> Bags:
    """Return the bags of a ``tf.RaggedTensor`` [batch, any], with the weights of another one."""
    splits = [None if each is None else tf.cast(each.row_splits, tf.int64) for each in (weights, ids)]
    given = None if weights is None else _in_place(weights.flat_values, *splits)
    return Bags(ids.flat_values, ids.value_rowids(), ids.nrows(), given)


def of_last_axis(ids: Any, weights: Any) -> Bags:
    """Return the bags of dense ids [..., m], of which each has ``m``."""
    shape = tf.shape(ids, out_type=tf.int64)
    example = tf.range(tf.size(ids, out_type=tf.int64)) // tf.maximum(shape[-1], 1)
    given = None if weights is None else tf.reshape(_in_place(weights, tf.shape(weights), tf.shape(ids)), [-1])
    return Bags(tf.reshape(ids, [-1]), example, tf.reduce_prod(shape[:-1]), given)


def _in_place(weights: Any, places: Any, expected: Any) -> Any:
    """Return ``weights``, float32; the step fails if their places are not those of the ids.

    The weights depend on that comparison, and the ids do not: what looks up the ids ahead of their step needs no more.
    """
    with tf.control_dependencies([_equal(tf.shape(places), tf.shape(expected))]):  # else one is repeated for the other
        places = tf.identity(places)
    with tf.control_dependencies([_equal(places, expected)]):
        return tf.cast(tf.identity(weights), tf.float32)


def _equal(places: Any, expected: Any) -> Any:
    message = "embedding.lookup: expected a weight for each id, found weights in other places"
    return tf.debugging.assert_equal(places, expected, message=message)


class RowFinder:
    """A lookup of a model.

    Args:
      find: a function from flat ids, int64 or strings [n], to their rows, float32 [n, width].
      padding: an id without a row, or None for none.
    """

    def __init__(self, table: Table, find: Callable[[Any], Any], padding: Any):
        self._table, self._find, self._padding = table, find, padding

    def rows(self, ids: Any, combiner: Optional[str], weights: Any) -> Any:
        """Return the rows of ``ids``, as ``cluster.embedding.lookup`` describes them. Raises ValueError."""
        if combiner is not None and combiner not in COMBINERS:
            raise self._unlike(f"a combiner, {_listed(COMBINERS)}", repr(combiner))
        if weights is not None and combiner not in WEIGHTED:
            raise self._unlike(f"a combiner for weights, {_listed(WEIGHTED)}", repr(combiner))
        if isinstance(ids, tf.RaggedTensor) and combiner is None:
            return ids.with_flat_values(self._of_each(ids.flat_values))
        if isinstance(ids, (tf.SparseTensor, tf.RaggedTensor)):
            return self._of_bags(ids, combiner, weights)
        ids = tf.convert_to_tensor(ids)
        return self._of_each(ids) if combiner is None else self._over_last_axis(ids, combiner, weights)

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
        """Return one row for the ids in each last axis of dense ids."""
        if ids.shape.ndims == 0:
            raise self._unlike("ids with an axis to combine over", "none")
        if isinstance(weights, (tf.SparseTensor, tf.RaggedTensor)):
            raise self._unlike("weights like the ids, a dense tensor", repr(weights))
        if weights is not None or self._padding is not None or combiner == "max":
            weights = None if weights is None else tf.convert_to_tensor(weights)
            if weights is not None and not weights.shape.is_compatible_with(ids.shape):
                raise self._unlike(f"weights of the shape of the ids, {ids.shape}", f"{weights.shape}")
            rows = self._combined(of_last_axis(ids, weights), combiner)
            return self._shaped(rows, tf.shape(ids)[:-1], ids.shape[:-1])
        total = tf.reduce_sum(self._of_each(ids), -2)  # bags of one size take fewer operations
        number = tf.cast(tf.maximum(tf.shape(ids)[-1], 1), tf.float32)
        return total if combiner == "sum" else total / (number if combiner == "mean" else tf.sqrt(number))

    def _of_each(self, ids: Any) -> Any:
        """Return a row for each of dense ids."""
        return self._shaped(self._spread(tf.reshape(ids, [-1])), tf.shape(ids), ids.shape)

    def _combined(self, bags: Bags, combiner: str) -> Any:
        padding = self._padding_among(bags.ids)
        bags = bags._replace(ids=self._comparable(bags.ids))
        if padding is not None:
            bags = bags.without(padding)
        rows = bags.combined(self._find(bags.ids), combiner)
        rows.set_shape([None, self._table.width])
        return rows

    def _spread(self, ids: Any) -> Any:
        """Return a row for each of flat ids; zeros for those that are the padding."""
        padding, ids = self._padding_among(ids), self._comparable(ids)
        if padding is None:
            return self._find(ids)
        places = where_true(tf.not_equal(ids, padding))
        shape = tf.stack([tf.size(ids, out_type=tf.int64), self._table.width])
        rows = tf.scatter_nd(places[:, tf.newaxis], self._find(tf.gather(ids, places)), shape)
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

    def _padding_among(self, ids: Any) -> Any:
        """Return the padding of ``ids`` as ``_comparable`` would return it; None for none."""
        padding = self._padding
        if padding is None:
            return None
        wanted: Any = str if ids.dtype == tf.string else int
        name = "a string" if wanted is str else "an integer"
        if not isinstance(padding, wanted) or isinstance(padding, bool):
            raise self._unlike(f"a padding like the ids, {name}", repr(padding))
        if isinstance(padding, str):
            return tf.constant(padding)
        if ids.dtype.is_integer and not ids.dtype.min <= padding <= ids.dtype.max:
            raise self._unlike(
                f"a padding from {ids.dtype.min} to {ids.dtype.max}, like {ids.dtype.name}", str(padding)
            )
        return tf.constant(signed(padding % (1 << 64)), tf.int64)

    def _unlike(self, expected: str, found: str) -> ValueError:
        return ValueError(f"embedding.lookup in {self._table.name!r}: expected {expected}, found {found}")


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"
