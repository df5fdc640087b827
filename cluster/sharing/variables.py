"""One set of variables for a model that is built several times in one graph: in each tower, and for the evaluation.

    tf.get_variable                       a variable scope that reuses finds the variable again
    tf.Variable, tf.keras.layers, models  the first build notes each variable by its name; a later one gets it back

Copies are kept apart by the operations that each made, and never by a name: an author may leave a copy's name scope,
and so do layers.

Variables have the names that they would have in a model that is built once, without any tower:
``dense/kernel``, not ``tower_0/dense/kernel``.
"""

import contextlib
import functools
import sys
import traceback
from collections import Counter
from itertools import takewhile
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple
from typing import Counter as Counts

from cluster.runtime.tf_compat import tf
from cluster.sharing import keras_graphs
from cluster.sharing.graph_collections import Collections, ScopeCounts

Site = Tuple[Tuple[str, int], ...]  # the lines of the model on the way to a variable, (file, line), the innermost first
_LIBRARIES = ("tensorflow", "tensorflow_core", "keras", "cluster")


class NotShared(ValueError):
    """A copy of the model made variables of its own. ``op`` is the first one's operation."""

    def __init__(self, text: str, op: Any):
        super().__init__(text)
        self.op = op


def refuse_new_variables(who: str, known: int) -> None:
    """Refuse a copy of the model that made variables beyond the ``known`` first ones of the graph.

    Raises:
      NotShared: it did.
    """
    variables = tf.global_variables()[known:]
    if variables:
        names = ", ".join(variable.op.name for variable in variables)
        raise NotShared(
            f"{who} made variables of its own ({names}), expected the first tower's to be shared;"
            " a model must make variables of the same names and shapes each time it is called",
            variables[0].op,
        )


class _Made(NamedTuple):
    """A variable and where the model made it."""

    variable: Any
    site: Site


class Sharing:
    """The variables of one model in one graph: the first call makes them, later ones get the same.

    Attributes:
      copies: of the model, in the order of building: of each the first operation of the graph that it made, and the
        first behind these.
      scopes: how often a copy has opened each variable scope.
    """

    def __init__(self) -> None:
        self.copies: List[range] = []
        self.scopes = ScopeCounts()
        self._made: Dict[str, List[_Made]] = {}
        self._collections = Collections()
        self._making: List[range] = []  # operations made while variables were, which belong to all copies
        self._keras_names: Optional[Dict[str, int]] = None  # as they were before the first call
        self._is_open = False

    @property
    def counted_names(self) -> List[str]:
        """Return the names of variables that the first call made without ``tf.get_variable``, in their order."""
        return [each.variable.op.name for made in self._made.values() for each in made]

    @contextlib.contextmanager
    def copy(self) -> Iterator[None]:
        """Keep what is built inside apart from other copies: one call of the model, and gradients of its result.

        Collections of the graph, and the losses of a layer that several copies call, have what this copy put there.
        """
        begin, self._is_open = _operations(), True
        try:
            with self._collections.alone(), keras_graphs.losses_alone(self._made_for_all):
                yield
        finally:
            self._is_open = False
            self.copies.append(range(begin, _operations()))

    @contextlib.contextmanager
    def _made_for_all(self) -> Iterator[None]:
        """Note what is made inside, with a variable, as all copies' own."""
        begin = _operations()
        with self._collections.making():
            yield
        self._making.append(range(begin, _operations()))

    def of_others(self, index: int) -> Set[Any]:
        """Return the operations that copies but that of this index made for themselves, and not with a variable."""
        copies, made = self.operations, {op for part in _within(self._making) for op in part}
        return {op for copy in copies for op in copy} - {*copies[index]} - made

    @property
    def operations(self) -> List[List[Any]]:
        """Return the operations of the graph that each copy made, its differentiation included, in their order."""
        return _within(self.copies)

    def later_operations(self) -> Set[Any]:
        """Return those that copies after the first made."""
        return {op for copy in self.operations[1:] for op in copy}

    def call(
        self, model: Callable[..., Any], batch: Mapping[str, Any], scope: str, who: str, training: Optional[bool] = None
    ) -> Any:
        """Return what ``model`` returns for ``batch``, built in the name scope ``scope``: as a copy, or as part of one.

        Args:
          who: calls this copy of the model by name in an error.
          training: the mode of Keras layers that are called without one; None leaves Keras as it is. Of a copy that
            trains, the updates of Keras layers join ``tf.GraphKeys.UPDATE_OPS``.

        Raises:
          NotShared: a call after the first made variables of its own.
        """
        with contextlib.ExitStack() as stack:
            if not self._is_open:
                stack.enter_context(self.copy())
            return self._call(model, batch, scope, who, training)

    def _call(
        self, model: Callable[..., Any], batch: Mapping[str, Any], scope: str, who: str, training: Optional[bool]
    ) -> Any:
        is_first, outer = self._keras_names is None, _scope()
        known = len(tf.global_variables())
        if self._keras_names is None:
            self._keras_names = keras_graphs.names()
        keras_graphs.rename_from(self._keras_names)
        # The first call makes the variables, or finds them as the caller's scope says; the rest reuse.
        making: Callable[[], Any] = contextlib.nullcontext
        if is_first:
            making = self._made_for_all
        build = _Build(self._made, is_first, who, outer, making)
        layers = keras_graphs.layers(training, making)
        with self.scopes.around(), build.within(scope), self.scopes.within(), layers:
            output = model(**batch)
        if not is_first:
            refuse_new_variables(who, known)
        return output


class _Build:
    """One call of the model: it notes what is made, or hands out what was noted.

    Args:
      outer: the name scope around the call, ``""`` or one with a slash at its end.
      making: a context in which variables are made that all copies share.
    """

    def __init__(self, made: Dict[str, List[_Made]], is_first: bool, who: str, outer: str, making: Callable[[], Any]):
        self._made, self._is_first, self._who, self._outer, self._making = made, is_first, who, outer, making
        self._inner = ""  # the name scope of the call itself
        self._asked: Counts[str] = Counter()
        self._is_getting = False

    @contextlib.contextmanager
    def within(self, scope: str) -> Iterator[None]:
        """Let the model make and find variables inside, in the name scope ``scope``.

        Variables named after a tensor, as its average is, have names without that scope.
        """
        get = functools.partial(self._get, f"{scope}/")
        reusing = tf.variable_scope(tf.get_variable_scope(), reuse=not self._is_first, custom_getter=get)
        with reusing, tf.name_scope(scope) as self._inner, tf.variable_creator_scope(self.create):
            yield

    def _get(self, scope: str, getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        """Stand in for ``tf.get_variable``, which has a way of its own to find a variable again."""
        if not self._is_first and tf.is_tensor(kwargs.get("initializer")):
            kwargs["dtype"] = kwargs["initializer"].dtype.base_dtype  # as TensorFlow took it for the first call
        before, self._is_getting = self._is_getting, True
        try:
            with self._making():
                return getter(name[len(scope) :] if name.startswith(scope) else name, *args, **kwargs)
        finally:
            self._is_getting = before

    def create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Make or find the variable that the model asks for: a creator for ``tf.variable_creator_scope``.

        Raises:
          NotShared: the same lines of the model made another variable in the first call.
        """
        if self._is_getting or not _is_global(kwargs):
            return next_creator(**kwargs)
        scope = self._scope()
        name = scope + (kwargs.get("name") or "Variable")
        site = _site()
        found = None if self._is_first else self._find(name, kwargs, site)
        if found is not None:
            return found
        with tf.name_scope(scope or None), self._making():
            variable = next_creator(**kwargs)
        if self._is_first:
            self._made.setdefault(name, []).append(_Made(variable, site))
        return variable

    def _scope(self) -> str:
        """Return the name scope that the model asks in, as if it were built without one of its own around it."""
        scope = _scope()  # the author may have left the call's own
        return self._outer + scope[len(self._inner) :] if scope.startswith(self._inner) else scope

    def _find(self, name: str, kwargs: Mapping[str, Any], site: Site) -> Optional[Any]:
        made, index = self._made.get(name, []), self._asked[name]
        self._asked[name] += 1
        if index >= len(made) or not made[index].variable.shape.is_compatible_with(_shape(kwargs)):
            return None
        self._check(name, made[index], site)
        return made[index].variable

    def _check(self, name: str, made: _Made, site: Site) -> None:
        """Refuse a name that counts layers and means another one here, as the first call had more of them."""
        there = [each.variable.op.name for of_name in self._made.values() for each in of_name if each.site == site]
        if there and made.site != site:
            raise NotShared(
                f"{self._who} asks for {name} where the first tower made {', '.join(there)};"
                " give layers and variables that only some towers have names of their own",
                made.variable.op,
            )


def _within(parts: Sequence[range]) -> List[List[Any]]:
    """Return the operations of the graph in each of these intervals."""
    operations = tf.get_default_graph().get_operations()
    return [operations[part.start : part.stop] for part in parts]


def _operations() -> int:
    return len(tf.get_default_graph().get_operations())


def _scope() -> str:
    """Return the current name scope, with a slash at its end; ``""`` outside of any."""
    scope: str = tf.get_default_graph().get_name_scope()
    return scope + "/" if scope else ""


def _is_global(kwargs: Mapping[str, Any]) -> bool:
    """Return whether a variable is one of the model's, and no counter of one copy.

    The counters are, for example, those of ``tf.metrics``.
    """
    collections = kwargs.get("collections")
    return collections is None or tf.GraphKeys.GLOBAL_VARIABLES in collections


def _shape(kwargs: Mapping[str, Any]) -> Any:
    """Return the shape of the variable that is asked for, as far as it is known."""
    shape: Any = kwargs.get("shape")
    value: Any = kwargs.get("initial_value")
    if shape is not None:
        return tf.TensorShape(shape)
    value = value() if callable(value) else value
    return tf.TensorShape(value.shape if hasattr(value, "shape") else tf.convert_to_tensor(value).shape)


def _site() -> Site:
    """Return the lines of the model that led here, without those of libraries."""
    inside = takewhile(
        lambda each: each[0].f_code is not Sharing._call.__code__, traceback.walk_stack(sys._getframe(1))
    )
    return tuple(
        (frame.f_code.co_filename, line)
        for frame, line in inside
        if str(frame.f_globals.get("__name__")).split(".")[0] not in _LIBRARIES
    )
