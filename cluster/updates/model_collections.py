"""Let an optimizer on the servers find in collections what the model has put there, as in one process.

a variable of the model   the servers' variable of that name
a tensor or an operation  a stand-in without a value; an update that needs it is refused
anything else             itself
"""

from typing import Any, Dict, List, Mapping, Sequence

from cluster.errors import JobError
from cluster.runtime.tf_compat import tf
from cluster.variables.uses import ancestors

_RUN_BESIDE = tf.GraphKeys.UPDATE_OPS  # the workers run these; here is nothing to wait for


class ModelCollections:
    """Entries of the model's collections, in the current graph.

    Args:
      entries: of the model's graph, by collection.
      variables: of the current graph, by the author's names.
      scope: a name scope for stand-ins.
    """

    def __init__(self, entries: Mapping[str, Sequence[Any]], variables: Mapping[str, Any], scope: str):
        self._variables = variables
        self._stand_ins: Dict[str, List[Any]] = {}
        with tf.name_scope(scope), tf.control_dependencies(None):
            for name, found in entries.items():
                if name != _RUN_BESIDE:
                    tf.get_collection_ref(name).extend([self._entry(name, each) for each in found])

    def _entry(self, name: str, entry: Any) -> Any:
        is_operation = isinstance(entry, tf.Operation)
        if not (is_operation or tf.is_tensor(entry)):
            return entry
        if hasattr(entry, "read_value") and entry.op.name in self._variables:
            return self._variables[entry.op.name]
        made = tf.placeholder(tf.bool) if is_operation else tf.placeholder(entry.dtype.base_dtype, entry.shape)
        self._stand_ins.setdefault(name, []).append(made)
        return made

    def refuse_needed(self, update: Any, who: str) -> None:
        """Refuse an update that needs what has no value on the servers.

        Args:
          who: the optimizer, with the place of its ``apply_gradients``.

        Raises:
          JobError: it does.
        """
        needed = ancestors([update])
        for name, found in self._stand_ins.items():
            if any(each.op in needed for each in found):
                raise JobError(
                    f"{who}: expected an apply_gradients of gradients and variables, found that it needs what the model"
                    f" has put into the collection {name!r}, which is on the workers; put operations into"
                    " tf.GraphKeys.UPDATE_OPS, and terms into the loss that model returns"
                )
