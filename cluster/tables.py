"""Tables: variables of which a step needs some rows, looked up where they are.

One lookup, for a table in slices on several servers:

    worker   every row once, sorted out by slice            -> row numbers go to the servers
    ps       takes the rows                                 -> rows come back
    worker   puts them into the order of the request

The gradient goes the same way: summed for each row on the worker, then only those rows
travel. Nothing has the size of the table, wherever it is.
"""

from typing import Any, List, Sequence

from cluster.engine import tf

_GRADIENT = "ClusterTableRows"


def as_table(slices: Sequence[Any], host: str) -> Any:
    """A tensor for the whole table that ``tf.gather`` and ``tf.nn.embedding_lookup`` look rows up in.

    Both ask what they are given for a method ``sparse_read`` before they read all of it.
    Any other use of the tensor does read the whole table.

    Args:
      slices: variables [rows, …], contiguous slices of the table in order.
      host: the device of the worker's memory, where row numbers and rows are handled.
    """
    with tf.device(host):
        whole = tf.concat([tf.convert_to_tensor(part) for part in slices], 0, name="table")
        whole = tf.identity(whole)
    whole.sparse_read = lambda ids, name=None: lookup(slices, ids, host)
    return whole


def lookup(slices: Sequence[Any], ids: Any, host: str) -> Any:
    """Rows of a table: ids of any shape [...] -> [..., width], on ``host``.

    Raises:
      tf.errors.InvalidArgumentError: when it runs, an id is not in the table.
    """
    # Lookups of TensorFlow's own colocate with the table, which is nowhere as a whole.
    with tf.get_default_graph().colocate_with(None, ignore_existing=True), tf.device(host):
        ids = tf.convert_to_tensor(ids)
        distinct, where = tf.unique(tf.reshape(ids, [-1]))
        rows = tf.gather(_distinct_rows(slices, distinct), where)
        width = slices[0].shape.as_list()[1:]
        return _shaped(tf.reshape(rows, tf.concat([tf.shape(ids), width], 0)), ids.shape.concatenate(width))


def _shaped(rows: Any, shape: Any) -> Any:
    rows.set_shape(shape)
    return rows


def _distinct_rows(slices: Sequence[Any], ids: Any) -> Any:
    if len(slices) == 1:
        return tf.identity(_take(slices[0], ids))
    ends = [int(end) for end in _ends(slices)]
    owner = tf.searchsorted(tf.constant(ends[:-1], ids.dtype), ids, side="right")
    starts = tf.gather(tf.constant([0, *ends[:-1]], ids.dtype), owner)
    wanted = tf.dynamic_partition(ids - starts, owner, len(slices))
    places = tf.dynamic_partition(tf.range(tf.size(ids)), owner, len(slices))
    return tf.dynamic_stitch(places, [_take(part, rows) for part, rows in zip(slices, wanted)])


def _ends(slices: Sequence[Any]) -> List[int]:
    lengths = [part.shape.as_list()[0] for part in slices]
    return [sum(lengths[: index + 1]) for index in range(len(lengths))]


def _take(part: Any, ids: Any) -> Any:
    """The rows of one slice, taken on its server. Every id is there once."""
    with tf.get_default_graph().gradient_override_map({"GatherV2": _GRADIENT}), tf.device(part.device):
        return tf.gather(part, ids)


@tf.RegisterGradient(_GRADIENT)
def _rows_gradient(op: Any, grad: Any) -> List[Any]:
    """The gradient of ``_take``, made on the worker.

    TensorFlow's own is made where the rows were taken, so that the worker would send it
    there, fetch it for the mean over its towers, and send that.
    """
    ids = op.inputs[1]
    with tf.get_default_graph().colocate_with(None, ignore_existing=True), tf.device(ids.device):
        if isinstance(grad, tf.IndexedSlices):
            grad = tf.math.unsorted_segment_sum(grad.values, grad.indices, tf.size(ids))
        shape = tf.constant(op.inputs[0].shape.as_list(), tf.int64)
    return [tf.IndexedSlices(grad, ids, shape), None, None]
