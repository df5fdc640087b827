"""An object of the author's that is made once, outside of ``model``, and called for each copy of it, as a layer is."""

import contextlib
from typing import Any, ContextManager, Dict, List, Tuple

import tensorflow.compat.v1 as tf


class Net:
    """What such an object keeps: the scope of its first call, its layers, and the terms that its calls have added."""

    def __init__(self) -> None:
        self.terms: List[Any] = []
        self._scope = ""
        self._layers: Dict[str, Any] = {}

    def entered(self) -> ContextManager[Any]:
        """The scope of its first call, as layers of TensorFlow enter it in each."""
        if not self._scope:
            with tf.name_scope("net") as self._scope:
                pass
        return tf.name_scope(self._scope)  # type: ignore[no-any-return]

    def layer(self, name: str, make: Any) -> Any:
        """A layer of that name, which is made by the first who asks."""
        if name not in self._layers:
            self._layers[name] = make()
        return self._layers[name]


class Nets:
    """One for each graph: a process of an author's has one graph."""

    def __init__(self) -> None:
        self._found: List[Tuple[Any, Net]] = []

    def of_this_graph(self) -> Net:
        """The one of the default graph."""
        graph = tf.get_default_graph()
        for known, net in self._found:
            if known is graph:
                return net
        self._found.append((graph, Net()))
        return self._found[-1][1]


def scope_of(name: str, net: Net) -> ContextManager[Any]:
    """The scope in which something is added by hand."""
    if name == "cleared":
        return tf.name_scope(None)  # type: ignore[no-any-return]
    if name == "absolute":
        return tf.name_scope("x/")  # type: ignore[no-any-return]
    if name == "variable":
        return tf.variable_scope("inner")  # type: ignore[no-any-return]
    return net.entered() if name == "layer" else contextlib.nullcontext()
