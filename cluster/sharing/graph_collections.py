"""Show one copy of a model only its own entries in the graph's collections.

A copy finds what it put there itself, as if there were no other copy. Copies share variables. So a copy also finds the
variables that were put into a collection when they were made, which the first copy did for all. It also finds what
TensorFlow keeps of these variables: regularization losses, and the lists of variables.
"""

import contextlib
from typing import Any, Dict, Iterator, List, Sequence

from cluster.runtime.tf_compat import tf

_KEYS = tf.GraphKeys
_SHARED = {
    _KEYS.GLOBAL_VARIABLES,
    _KEYS.TRAINABLE_VARIABLES,
    _KEYS.LOCAL_VARIABLES,
    _KEYS.MODEL_VARIABLES,
    _KEYS.METRIC_VARIABLES,
    _KEYS.MOVING_AVERAGE_VARIABLES,
    _KEYS.REGULARIZATION_LOSSES,
    _KEYS.GLOBAL_STEP,
    _KEYS.TABLE_INITIALIZERS,
    _KEYS.COND_CONTEXT,
    _KEYS.WHILE_CONTEXT,
    _KEYS.SUMMARIES,
}


class Collections:
    """The collections of one graph, for the copies of one model; ``note`` what variables joined when they were made."""

    def __init__(self) -> None:
        self._made_into: Dict[str, List[Any]] = {}

    def note(self, variable: Any, collections: Sequence[str]) -> None:
        """Note that a variable of the first copy was put into ``collections`` when made."""
        for name in collections:
            self._made_into.setdefault(name, []).append(variable)

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hide the entries that other copies have put into collections, while one is built."""
        before = {name: list(tf.get_collection_ref(name)) for name in _own_names()}
        for name in before:
            tf.get_collection_ref(name)[:] = self._made_into.get(name, [])
        try:
            yield
        finally:
            for name in _own_names():
                found = tf.get_collection_ref(name)
                found[:] = [
                    *before.get(name, []),
                    *found[len(self._made_into.get(name, [])) if name in before else 0 :],
                ]


def _own_names() -> List[str]:
    """Return the collections that an author may use."""
    names = tf.get_default_graph().get_all_collection_keys()
    return [name for name in names if isinstance(name, str) and name not in _SHARED and "/open_" not in name]
