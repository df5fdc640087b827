"""The index of a store: from keys to the places of their rows.

It is one of TensorFlow's hash tables. The dense one takes half the memory, and never uses the entry of a removed key
again. So it serves a store whose rows stay; where rows expire, the other one does.
"""

from typing import Any

from cluster.runtime.tf_compat import tf

NO_ROW = -1
_NO_KEY, _REMOVED = 0x3C6EF372FE94F82B, 0x1F83D9ABFB41BD6B  # entries without a key; a lookup of these two fails
_FIRST_ENTRIES = 1 << 12
_LOAD = 0.8  # of the entries have keys when the dense table doubles


class Index:
    """Make the index of a store on the current device.

    Args:
      name: of the store.
      removes: whether ``remove`` is ever called.
    """

    def __init__(self, name: str, removes: bool):
        self._is_dense = not removes
        self._dtype = tf.int32 if self._is_dense else tf.int64
        self._name = f"{name}/dense_index" if self._is_dense else f"{name}/index"
        self._made = None if self._is_dense else _sparse(self._name)

    def find(self, keys: Any) -> Any:
        """Return the places of keys [n], int64 [n]; ``NO_ROW`` for a key without one."""
        none = tf.constant(NO_ROW, self._dtype)
        found = tf.raw_ops.LookupTableFindV2(table_handle=self._table(keys), keys=keys, default_value=none)
        return tf.cast(tf.reshape(found, [-1]), tf.int64)

    def insert(self, keys: Any, places: Any) -> Any:
        """Make the operation that leads keys [n] to places, int64 [n]."""
        places = tf.cast(places, self._dtype)
        return tf.raw_ops.LookupTableInsertV2(table_handle=self._table(keys), keys=keys, values=places)

    def remove(self, keys: Any) -> Any:
        """Make the operation that removes those of the keys [n] that are there."""
        return tf.raw_ops.LookupTableRemoveV2(table_handle=self._table(keys), keys=keys)

    def empty(self) -> Any:
        """Make the operation that removes all keys.

        The dense table cannot be emptied. So it is given up, and whatever uses the index next makes another one.
        """
        nothing = tf.zeros([0], tf.int64)
        table = self._table(nothing)
        if self._is_dense:
            return tf.raw_ops.DestroyResourceOp(resource=table, ignore_lookup_error=True)
        return tf.raw_ops.LookupTableImportV2(table_handle=table, keys=nothing, values=nothing)

    def _table(self, needed: Any) -> Any:
        """Return the table, for an operation that needs this first.

        A step that asked for the dense table when it began would still ask for that one after ``empty``, and fail.
        """
        if self._made is not None:
            return self._made
        with tf.control_dependencies([needed]):
            return _dense(self._name)


def _sparse(name: str) -> Any:
    return tf.raw_ops.MutableHashTableV2(key_dtype=tf.int64, value_dtype=tf.int64, shared_name=name)


def _dense(name: str) -> Any:
    with tf.container("tables"):
        return tf.raw_ops.MutableDenseHashTableV2(
            empty_key=tf.constant(_NO_KEY, tf.int64),
            deleted_key=tf.constant(_REMOVED, tf.int64),
            value_dtype=tf.int32,
            shared_name=name,
            initial_num_buckets=_FIRST_ENTRIES,
            max_load_factor=_LOAD,
        )
