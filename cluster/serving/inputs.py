"""The tensors that a served model is fed: those of a training batch, with any number of examples.

A sparse tensor is three inputs, ``NAME_indices``, ``NAME_values`` and ``NAME_dense_shape``. A ragged one is two,
``NAME_values`` and ``NAME_row_lengths``. So a caller needs dense tensors alone.
"""

from typing import Any, Dict, Mapping, NamedTuple, Sequence

from cluster.job import Job
from cluster.runtime.tf_compat import tf


class Column(NamedTuple):
    """One input of a batch, without a graph.

    ``kind`` is dense, sparse or ragged, or the type of anything else; ``shape`` is that of a batch, None where unknown.
    """

    kind: str
    dtype: Any
    shape: Any


def columns(batch: Mapping[str, Any]) -> Dict[str, Column]:
    """Return the columns of a batch, by name."""
    return {name: _column(value) for name, value in batch.items()}


def _column(value: Any) -> Column:
    if isinstance(value, tf.SparseTensor):
        return Column("sparse", value.dtype, value.shape.ndims)
    if isinstance(value, tf.RaggedTensor):
        is_simple = value.ragged_rank == 1
        return Column("ragged" if is_simple else "deeply ragged", value.dtype, value.flat_values.shape.as_list()[1:])
    if isinstance(value, tf.Tensor):
        return Column("dense", value.dtype, None if value.shape.ndims is None else value.shape.as_list())
    return Column(type(value).__name__, None, None)


class Inputs:
    """Make the placeholders of some columns in the current graph.

    Attributes:
      batch: what ``predict`` gets, by name.
      fed: the placeholders, by name.

    Raises:
      JobError: a column is of a kind that cannot be fed, or two placeholders have one name.
    """

    def __init__(self, job: Job, found: Mapping[str, Column], names: Sequence[str]):
        self._job, self.fed = job, {}  # type: Job, Dict[str, Any]
        self.batch = {name: self._made(name, found[name]) for name in names}

    def _made(self, name: str, column: Column) -> Any:
        expected = f"a dense, sparse or ragged tensor as {name!r}, to serve"
        self._job.check("inputs", expected, column.kind, column.kind in ("dense", "sparse", "ragged"))
        if column.kind == "dense":
            return self._fed(name, column.dtype, _any_number(column.shape))
        values = self._fed(f"{name}_values", column.dtype, [None, *(column.shape if column.kind == "ragged" else [])])
        if column.kind == "ragged":
            return tf.RaggedTensor.from_row_lengths(values, self._fed(f"{name}_row_lengths", tf.int64, [None]))
        indices = self._fed(f"{name}_indices", tf.int64, [None, column.shape])
        return tf.SparseTensor(indices, values, self._fed(f"{name}_dense_shape", tf.int64, [column.shape]))

    def _fed(self, name: str, dtype: Any, shape: Any) -> Any:
        self._job.check("inputs", "inputs of different names, to serve", f"two of {name!r}", name not in self.fed)
        self.fed[name] = tf.placeholder(dtype, shape, name=name)
        return self.fed[name]


def _any_number(shape: Any) -> Any:
    """Return the shape of a batch of any number of examples."""
    return shape if not shape else [None, *shape[1:]]
