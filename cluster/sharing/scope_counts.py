"""The number of times that a graph has opened each variable scope: it names ``variable_scope(None, "dense")`` so.

Every copy of a model counts from where the first one began. What comes behind them goes on from where that one ended.
"""

import contextlib
from typing import Any, Dict, Iterator, Mapping, Optional

from cluster.runtime.tf_compat import tf

Counts = Mapping[str, int]
_STORE: Any = ("__varscope",)  # the collection in which TensorFlow keeps the counts of a graph


class ScopeCounts:
    """The counts of one graph, for the copies of one model.

    Attributes:
      first: what the first copy has left; None before it is built.
    """

    def __init__(self) -> None:
        self._before: Counts = {}
        self.first: Optional[Counts] = None

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Go on from what the first copy leaves, and from what was there before any other."""
        before, is_first = now(), self.first is None
        yield
        count_from(self.first or {} if is_first else before)

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        """Count as in the first copy.

        The variable scope of a copy is between both contexts. At its end it forgets counts.
        """
        if self.first is not None:
            count_from(self._before)
            yield
            return
        self._before = now()
        yield
        self.first = now()


def now() -> Dict[str, int]:
    """Return the counts of the current graph, by the name of the scope."""
    return dict(_store().variable_scopes_count)


def count_from(counts: Counts) -> None:
    """Let the current graph go on from these counts."""
    _store().variable_scopes_count = dict(counts)


def _store() -> Any:
    tf.get_variable_scope()  # makes it
    (store,) = tf.get_collection_ref(_STORE)
    return store
