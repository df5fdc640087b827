"""Show one copy of a model only its own entries in the graph's collections, and its own counts of variable scopes.

A copy finds the entries that it added itself, as if no other copy existed. A copy also finds entries from before all
copies. Copies share the variables, which only the first copy creates. So a copy also finds entries that joined a
collection while a variable was created, such as the regularization loss of ``get_variable(regularizer=)``.

In a collection, TensorFlow counts how often a graph has opened each variable scope, and so names
``variable_scope(None, "dense")``. Every copy counts from the start of the first copy. Operations after the copies
continue from the end of the first copy.
"""

import contextlib
from collections import Counter
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence

from cluster.runtime.tf_compat import tf

Counts = Mapping[str, int]
_STORE: Any = ("__varscope",)  # the collection in which TensorFlow keeps the counts of a graph


class ScopeCounts:
    """The counts of how often one graph has opened each variable scope, for the copies of one model.

    Attributes:
      first: the counts at the end of the first copy; None before it is built.
    """

    def __init__(self) -> None:
        self._before: Counts = {}
        self.first: Optional[Counts] = None

    @contextlib.contextmanager
    def around(self) -> Iterator[None]:
        """Set the counts of the graph at the end of this context, in which one copy is built.

        After the first copy, the counts are those at the end of the copy. After a later copy, they are those from
        before the copy.
        """
        before, is_first = scope_counts(), self.first is None
        yield
        count_scopes_from(self.first or {} if is_first else before)

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        """Let the counts of a copy begin with the counts at the start of the first copy.

        Enter ``around``, the variable scope of the copy, and ``within`` in this order: the scope resets counts at its
        end.
        """
        if self.first is not None:
            count_scopes_from(self._before)
            yield
            return
        self._before = scope_counts()
        yield
        self.first = scope_counts()


def scope_counts() -> Dict[str, int]:
    """Return the counts of the current graph, by the name of the scope."""
    return dict(_store().variable_scopes_count)


def count_scopes_from(counts: Counts) -> None:
    """Let the current graph continue from these counts."""
    _store().variable_scopes_count = dict(counts)


def _store() -> Any:
    tf.get_variable_scope()  # creates the store
    (store,) = tf.get_collection_ref(_STORE)
    return store


_KEYS = tf.GraphKeys
# The lists by which TensorFlow itself finds the contents of a graph. All copies together are that graph.
_SHARED = {
    _KEYS.GLOBAL_VARIABLES,
    _KEYS.TRAINABLE_VARIABLES,
    _KEYS.LOCAL_VARIABLES,
    _KEYS.METRIC_VARIABLES,
    _KEYS.GLOBAL_STEP,
    _KEYS.TABLE_INITIALIZERS,
    _KEYS.COND_CONTEXT,
    _KEYS.WHILE_CONTEXT,
    _KEYS.SUMMARIES,
}
Entries = Dict[str, List[Any]]


class Collections:
    """The collections of one graph, for the copies of one model."""

    def __init__(self) -> None:
        self._made: Entries = {}  # joined while a variable was created
        self._of_copies: Entries = {}  # joined while a copy was built, for another reason

    @contextlib.contextmanager
    def making(self) -> Iterator[None]:
        """Note that entries that join collections inside this context belong to a variable, and so to all copies."""
        before = _lengths()
        yield
        _extend(self._made, _behind(before))

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hide the entries of other copies in collections while one copy is built."""
        before = {name: list(tf.get_collection_ref(name)) for name in _own_names()}
        for name, entries in before.items():
            tf.get_collection_ref(name)[:] = _without(entries, self._of_copies.get(name, ()))
        shown = _lengths()
        try:
            yield
        finally:
            added = _behind(shown)
            for name in _own_names():
                tf.get_collection_ref(name)[:] = [*before.get(name, []), *added.get(name, [])]
            _extend(self._of_copies, {name: _without(each, self._made.get(name, ())) for name, each in added.items()})


def own_entries() -> Entries:
    """Return the entries of the current graph's collections that an author may have added, as they are shown now."""
    return {name: tf.get_collection(name) for name in _own_names()}


@contextlib.contextmanager
def showing(entries: Mapping[str, Sequence[Any]]) -> Iterator[None]:
    """Show, inside this context, only ``entries``, a result of ``own_entries``, in the graph's collections."""
    before = own_entries()
    for name in {*before, *entries}:
        tf.get_collection_ref(name)[:] = entries.get(name, ())
    try:
        yield
    finally:
        for name, found in before.items():
            tf.get_collection_ref(name)[:] = found


def _own_names() -> List[str]:
    """Return the collections that an author may use."""
    names = tf.get_default_graph().get_all_collection_keys()
    return [name for name in names if isinstance(name, str) and name not in _SHARED and "/open_" not in name]


def _lengths() -> Dict[str, int]:
    return {name: len(tf.get_collection_ref(name)) for name in _own_names()}


def _behind(lengths: Mapping[str, int]) -> Entries:
    """Return the entries that collections have beyond these lengths."""
    return {name: tf.get_collection_ref(name)[lengths.get(name, 0) :] for name in _own_names()}


def _extend(entries: Entries, more: Mapping[str, Sequence[Any]]) -> None:
    for name, found in more.items():
        entries.setdefault(name, []).extend(found)


def _without(entries: Sequence[Any], others: Sequence[Any]) -> List[Any]:
    """Return entries without ``others``; of an object that occurs several times, the newest entries go first."""
    left, kept = Counter(map(id, others)), []
    for each in reversed(entries):
        if left[id(each)]:
            left[id(each)] -= 1
        else:
            kept.append(each)
    return kept[::-1]
