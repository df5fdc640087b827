"""Keras layers in a graph for sessions: Keras 2 of TensorFlow 1.15 or of ``tf-keras``, and Keras 3 of TensorFlow 2.x.

Keras counts layers to name them, has a training mode, and collects updates for moving averages. Keras 3 was not
designed for graphs: its assignments during a build would never run in a session. So while a model is built with Keras 3

    an assignment              is noted as an update
    a seed of dropout          is drawn again in each step; Keras would read a counter, which towers share
    a seed that nobody set     comes from the graph's seed
    a loop over time           writes the output of each step to its own place, as graphs require
    a length of an axis        may be a ``tf.Dimension``
"""

import contextlib
import functools
import importlib
import random
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from cluster.runtime.tf_compat import tf

_ONE_AT_A_TIME = threading.RLock()  # a replacement in Keras is visible to all threads
_COUNTED = "cluster/keras_names"  # the collection that marks graphs in which Keras 3 counts from zero
_ADDED: List[List[Tuple[Any, List[Any]]]] = []  # of each open context ``layers``: the layers of Keras 2, and updates


def names() -> Dict[Any, int]:
    """Return the number of layers of each kind that Keras has named in this graph."""
    counters = dict(_counters())
    if _backend_of_keras_2() or tf.get_collection(_COUNTED):
        return counters
    tf.add_to_collection(_COUNTED, True)  # Keras 3 continues its counts from graph to graph
    return {}


def rename_from(counters: Mapping[Any, int]) -> None:
    """Make Keras name layers as it did when ``names`` returned ``counters``."""
    current = _counters()
    current.clear()
    current.update(counters)


@contextlib.contextmanager
def layers(training: Optional[bool], making: Callable[[], Any] = contextlib.nullcontext) -> Iterator[None]:
    """Set the training mode of layers that are called inside this context.

    The argument ``training`` of a call has priority.

    Args:
      training: None leaves the mode to Keras. If it is True, updates of layers join ``tf.GraphKeys.UPDATE_OPS``.
      making: a context in which a layer of ``tf.layers`` creates its variables.
    """
    graph = tf.get_default_graph()
    before = len(graph.get_operations())
    updates: List[Any] = []
    if _backend_of_keras_2():
        replaced = _keras_2(training, updates.extend, making)
    else:
        replaced = _keras_3(training, updates.extend)
    with _ONE_AT_A_TIME, replaced:
        yield
    if training:
        unfed = _without_placeholder(updates, graph.get_operations()[before:])
        known = tf.get_collection_ref(tf.GraphKeys.UPDATE_OPS)
        known.extend(update for update in unfed if update not in known)


def added_updates() -> List[Any]:
    """Return the updates that layers of Keras 2 have added in the open context ``layers``; a frozen layer has none."""
    added = _ADDED[-1] if _ADDED else []
    return [update for layer, updates in added if layer.trainable or layer.stateful for update in updates]


@contextlib.contextmanager
def losses_alone(making: Callable[[], Any]) -> Iterator[None]:
    """Remove, at the end of this context, the losses that calls inside it have added to their layers.

    So a layer that several copies call has no losses of other copies while one copy is built. A loss that a layer adds
    as it creates its variables remains.

    Args:
      making: a context in which a layer creates its variables.
    """
    layer = _layer_class()
    add_loss, build = layer.add_loss, layer._maybe_build
    noted: List[Tuple[Any, List[Any]]] = []
    building: List[Any] = []

    @functools.wraps(add_loss)
    def adding(self: Any, *args: Any, **kwargs: Any) -> None:
        known = len(self._losses)
        add_loss(self, *args, **kwargs)
        if not building:
            noted.append((self, self._losses[known:]))

    @functools.wraps(build)
    def maybe_build(self: Any, *args: Any, **kwargs: Any) -> Any:
        building.append(self)
        try:
            with making():
                return build(self, *args, **kwargs)
        finally:
            building.pop()

    with _ONE_AT_A_TIME, _replaced(layer, "add_loss", adding), _replaced(layer, "_maybe_build", maybe_build):
        yield
    for each, losses in noted:
        each._losses[:] = [loss for loss in each._losses if not any(loss is other for other in losses)]


@contextlib.contextmanager
def _keras_2(
    training: Optional[bool], note: Callable[[Sequence[Any]], None], making: Callable[[], Any]
) -> Iterator[None]:
    layer_class, backend = _layer_class(), _backend_of_keras_2()
    add_update, add_weight = layer_class.add_update, tf.layers.Layer.add_weight
    # The public name of tf-keras warns.
    phase = getattr(backend, "deprecated_internal_learning_phase_scope", backend.learning_phase_scope)

    @functools.wraps(add_update)
    def adding(layer: Any, *args: Any, **kwargs: Any) -> None:
        known = len(layer._updates)
        add_update(layer, *args, **kwargs)
        _ADDED[-1].append((layer, layer._updates[known:]))

    @functools.wraps(add_weight)
    def making_weight(layer: Any, *args: Any, **kwargs: Any) -> Any:
        with making():  # the regularization loss of a new variable joins its collection
            return add_weight(layer, *args, **kwargs)

    with contextlib.ExitStack() as stack:
        if training is not None:
            stack.enter_context(phase(int(training)))
        stack.enter_context(_replaced(layer_class, "add_update", adding))
        stack.enter_context(_replaced(tf.layers.Layer, "add_weight", making_weight))
        _ADDED.append([])
        stack.callback(_ADDED.pop)
        yield
        note(added_updates())


@contextlib.contextmanager
def _keras_3(training: Optional[bool], note: Callable[[Sequence[Any]], None]) -> Iterator[None]:
    layer, seeds = _internal("keras.src.layers.layer"), _internal("keras.src.random.seed_generator")
    backend = _internal("keras.src.backend")
    seed = tf.get_default_graph().seed

    class Context(layer.CallContext):  # type: ignore[name-defined, misc]
        """Keras's context of a call, with our training mode. The outermost layer creates it; inner layers use it."""

        def __init__(self, entry_layer: Any):
            super().__init__(entry_layer)
            self.training = training

    with contextlib.ExitStack() as stack:
        for owner, name, ours in (
            (layer, "CallContext", Context),
            (backend.Variable, "_direct_assign", functools.partialmethod(_assigned, note)),
            (backend, "rnn", functools.partial(_of_all_steps, backend.rnn)),
            (backend.numpy, "split", functools.partial(_split, backend.numpy.split)),
            (seeds.SeedGenerator, "next", _draw),
            (seeds, "python_random", random if seed is None else random.Random(seed)),
        ):
            stack.enter_context(_replaced(owner, name, ours))
        yield


def _assigned(variable: Any, note: Callable[[Sequence[Any]], None], value: Any) -> None:
    """Replace ``keras.Variable._direct_assign``.

    Raises:
      ValueError: the variable is trained.
    """
    if variable.trainable:
        raise ValueError(
            f"a layer assigns to {variable.path}, which is trained; a graph may assign before or after"
            " the layer reads the value; use a layer that does not assign to a trained variable"
        )
    note([variable._value.assign(tf.cast(value, variable._value.dtype), read_value=False)])


def _draw(generator: Any, ordered: bool = True) -> Any:
    """Replace ``keras.random.SeedGenerator.next``, whose state would be read and written in no fixed order."""
    drawn = tf.random.uniform([2], maxval=2**31 - 1, dtype=tf.int32, seed=generator._initial_seed)
    return tf.cast(drawn, generator.state.dtype)


def _of_all_steps(rnn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return rnn(*args, **{**kwargs, "return_all_outputs": True})


def _split(split: Callable[..., Any], x: Any, sections: Any, axis: int = 0) -> Any:
    """Replace the backend's own, which takes the length of an axis for positions unless it is an ``int``."""
    return split(x, int(sections) if isinstance(sections, tf.Dimension) else sections, axis=axis)


def _without_placeholder(updates: Sequence[Any], made: Sequence[Any]) -> List[Any]:
    """Return the updates that need no ``tf.keras.Input``: building a functional model calls its layers once."""
    fed: Set[Any] = set()
    reached = [op for op in made if op.type == "Placeholder"]
    while reached:
        op = reached.pop()
        fed.add(op)
        reached.extend(user for tensor in op.outputs for user in tensor.consumers() if user not in fed)
    return [update for update in dict.fromkeys(updates) if update not in fed]


def _counters() -> Dict[Any, int]:
    tf.keras.backend.get_uid("cluster")  # the first name creates the counters
    backend = _backend_of_keras_2()
    if backend:
        of_graph: Dict[Any, int] = backend.PER_GRAPH_OBJECT_NAME_UIDS[tf.get_default_graph()]
        return of_graph
    of_thread: Dict[Any, int] = _internal("keras.src.backend.common.global_state").get_global_attribute(
        "object_name_uids"
    )
    return of_thread


@functools.lru_cache(maxsize=None)
def _backend_of_keras_2() -> Any:
    """Return a module of Keras 2, or None if ``tf.keras`` is Keras 3.

    On TensorFlow 2.x ``tf.keras`` is Keras 2 where ``tf-keras`` is installed and TF_USE_LEGACY_KERAS is set.
    """
    package, is_keras_2, _ = _layer_class().__module__.partition(".engine.")
    return _internal(f"{package}.backend") if is_keras_2 else None


def _layer_class() -> Any:
    """Return Keras's class of all layers in graphs; ``tf-keras`` has another one outside of graphs."""
    return type(tf.keras.layers.Layer(name="any"))


@contextlib.contextmanager
def _replaced(owner: Any, name: str, ours: Any) -> Iterator[None]:
    theirs = getattr(owner, name)
    setattr(owner, name, ours)
    try:
        yield
    finally:
        setattr(owner, name, theirs)


def _internal(name: str) -> Any:
    """Import a module of Keras that is not part of TensorFlow's public API; requirements/ locks the release."""
    return importlib.import_module(name)
