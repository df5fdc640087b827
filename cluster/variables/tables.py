"""Tables: variables of which a step needs only some rows, which it looks up on their servers.

One lookup, for a table in slices on several servers:

    worker   every row once, sorted by slice                -> row numbers go to the servers
    ps       takes the rows                                 -> rows come back
    worker   the model's own gather takes its rows from these

The model is built on an ordinary variable. When the graph is complete, ``move`` connects its gathers to the rows that
were looked up. The variable itself never has a value, so no tensor on the worker has the size of the table. Gradients
are TensorFlow's own, for the rows that were looked up.
"""

from functools import lru_cache
from typing import Any, Callable, Dict, List, Sequence, Tuple

from cluster.runtime.tf_compat import tf
from cluster.variables.uses import READS, SHAPES, readers, replace, takes_rows


def move(variable: Any, slices: Sequence[Any], host: str) -> Dict[Any, Any]:
    """Connect the current graph to a table's ``slices`` wherever the graph uses ``variable``.

    Args:
      variable: the worker's variable; a step takes only rows of it, and an evaluation may read it whole.
      slices: variables [rows, …], contiguous slices of the table in order.
      host: the device of the worker's memory, for row numbers and rows.

    Returns:
      The rows that are looked up, for each operation that takes rows.
    """
    moved: Dict[Any, Any] = {}
    graph = tf.get_default_graph()
    with graph.colocate_with(None, ignore_existing=True), tf.control_dependencies(None), tf.device(host):
        whole = lru_cache(maxsize=1)(lambda: tf.concat([part.read_value() for part in slices], 0))  # at most once
        for op, tensor in list(readers(variable)):
            if takes_rows(op, tensor):
                moved[op] = _take_elsewhere(op, variable, slices)
            elif op.type in SHAPES:
                _replace_everywhere(op.outputs[0], tf.constant(variable.shape.as_list(), op.outputs[0].dtype))
            elif op.type == "Switch" and tensor.dtype == tf.resource:
                _read_in_branches(op, whole)
            elif op.inputs and tensor.dtype != tf.resource and not tensor.dtype._is_ref_dtype:
                replace(tensor, whole(), {op})
        _forget_reads(variable)
    return moved


def _take_elsewhere(op: Any, variable: Any, slices: Sequence[Any]) -> Any:
    """Connect a gather to the rows that were looked up for it; return these rows."""
    ids = op.inputs[1]
    waited_for = [each for each in op.control_inputs if each.type not in READS]
    with tf.control_dependencies(waited_for):
        flat = tf.reshape(tf.identity(ids), [-1])
    distinct, where = tf.unique(flat, out_idx=ids.dtype)
    rows = distinct_rows(slices, distinct)
    # The number of these rows differs from the table's: TensorFlow accepts no input of another known shape.
    rows = tf.placeholder_with_default(rows, [None, *variable.shape.as_list()[1:]])
    where = tf.reshape(where, tf.shape(ids))
    where.set_shape(ids.shape)
    if op.type == "ResourceGather":
        _replace_everywhere(op.outputs[0], tf.gather(rows, where))
    else:
        op._update_input(0, rows)
        op._update_input(1, where)
    return rows


def _read_in_branches(switch: Any, whole: Callable[[], Any]) -> None:
    """Connect reads and gathers in branches of a ``tf.cond``, into which ``switch`` passes the variable's handle."""
    for op in (user for handle in switch.outputs for user in handle.consumers()):
        if op.type == switch.type:
            _read_in_branches(op, whole)
        elif op.type in ("ReadVariableOp", "ResourceGather"):
            branch, value = op._get_control_flow_context(), whole()
            branch.Enter()
            brought = branch.AddValue(value)
            found = tf.gather(brought, op.inputs[1]) if op.type == "ResourceGather" else brought
            branch.Exit()
            _replace_everywhere(op.outputs[0], found)


def _replace_everywhere(old: Any, new: Any) -> None:
    new.set_shape(old.shape)
    replace(old, new, set(old.consumers()))


def _forget_reads(variable: Any) -> None:
    """Remove control dependencies on reads of the variable, which would fail: it has no value."""
    dead = {tensor.op for _, tensor in readers(variable)} - {variable.op}
    dead |= {op for op, _ in readers(variable) if op.type in (*SHAPES, "ResourceGather")}
    for op in dead:
        for waiting in list(op._control_outputs):
            kept = [each for each in waiting.control_inputs if each not in dead]
            waiting._remove_all_control_inputs()
            waiting._add_control_inputs(kept)


def distinct_rows(slices: Sequence[Any], ids: Any) -> Any:
    """Return the rows of a table with the numbers ``ids``, on the current device.

    Args:
      slices: contiguous slices of the table in order.
      ids: distinct row numbers, [n].

    Returns:
      The rows, [n, …].

    Raises:
      tf.errors.InvalidArgumentError: when the operation runs, an id is not in the table.
    """
    if len(slices) == 1:
        return tf.identity(_take(slices[0], ids))
    owner, starts = owners(slices, ids)
    wanted = tf.dynamic_partition(ids - starts, owner, len(slices))
    places = tf.dynamic_partition(tf.range(tf.size(ids)), owner, len(slices))
    return tf.dynamic_stitch(places, [_take(part, rows) for part, rows in zip(slices, wanted)])


def owners(slices: Sequence[Any], ids: Any) -> Tuple[Any, Any]:
    """Return, for each row number in ``ids``, [n], the index of the row's slice, int32 [n], and the slice's first row.

    The first rows are row numbers of the table, with the type and shape of ``ids``.
    """
    ends = [int(end) for end in _ends(slices)]
    owner = tf.searchsorted(tf.constant(ends[:-1], ids.dtype), ids, side="right")
    return owner, tf.gather(tf.constant([0, *ends[:-1]], ids.dtype), owner)


def _ends(slices: Sequence[Any]) -> List[int]:
    lengths = [part.shape.as_list()[0] for part in slices]
    return [sum(lengths[: index + 1]) for index in range(len(lengths))]


def _take(part: Any, ids: Any) -> Any:
    """Return the rows of one slice, taken on its server. Every id occurs once."""
    with tf.device(part.device):
        return tf.gather(part, ids)


def split_rows(grad: Any, slices: Sequence[Any]) -> List[Any]:
    """Return ``grad``, a table's sparse gradient of distinct rows, as one sparse gradient for each of ``slices``."""
    if len(slices) == 1:
        return [grad]
    owner, starts = owners(slices, grad.indices)
    rows = tf.dynamic_partition(grad.indices - starts, owner, len(slices))
    values = tf.dynamic_partition(grad.values, owner, len(slices))
    shapes = [tf.constant(part.shape.as_list(), tf.int64) for part in slices]
    return [tf.IndexedSlices(*parts) for parts in zip(values, rows, shapes)]
