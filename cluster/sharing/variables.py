"""One set of variables for a model that is built several times in one graph: in each tower, and for the evaluation.

    tf.get_variable                       a variable scope with ``reuse`` finds the variable again
    tf.Variable, tf.keras.layers, models  the first build notes each variable by its name; a later build receives it

Copies are distinguished by the operations that each has created, and never by a name: an author may leave a copy's name
scope, and so do layers.

Variables have the same names as in a model that is built once, without any tower: ``dense/kernel``, not
``tower_0/dense/kernel``.
"""

import contextlib
import functools
import sys
import traceback
from collections import Counter
from itertools import takewhile
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple
from typing import Counter as Counts

from cluster.runtime.tf_compat import PACKAGES, tf
from cluster.sharing import keras_graphs
from cluster.sharing.graph_collections import Collections, ScopeCounts

Site = Tuple[Tuple[str, int], ...]  # the lines of the model on the way to a variable, (file, line), the innermost first
_LIBRARIES = (*PACKAGES, "cluster")


class NotShared(ValueError):
    """A copy of the model created variables of its own. ``op`` is the operation of the first such variable."""

    def __init__(self, text: str, op: Any):
        super().__init__(text)
        self.op = op


def refuse_new_variables(who: str, known: int) -> None:
    """Refuse a copy of the model that created variables in addition to the graph's first ``known`` variables.

    Raises:
      NotShared: the copy created such variables.
    """
    variables = tf.global_variables()[known:]
    if variables:
        names = ", ".join(variable.op.name for variable in variables)
        raise NotShared(
            f"{who} made variables of its own ({names}), expected it to share those of the first tower;"
            " a model must make variables of the same names and shapes each time it is called",
            variables[0].op,
        )


class _Made(NamedTuple):
    """A variable, and the place where the model created it."""

    variable: Any
    site: Site


class Sharing:
    """The variables of one model in one graph: the first call creates them, and later calls reuse them.

    Attributes:
      copies: the copies of the model, in the order of building; each is the range of its operations in the graph.
      scopes: the counts of how often a copy has opened each variable scope.
    """

    def __init__(self) -> None:
        self.copies: List[range] = []
        self.scopes = ScopeCounts()
        self._made: Dict[str, List[_Made]] = {}
        self._collections = Collections()
        self._making: List[range] = []  # operations created together with variables, which belong to all copies
        self._keras_names: Optional[Dict[str, int]] = None  # the counts before the first call
        self._is_open = False

    @property
    def counted_names(self) -> List[str]:
        """Return the names of variables that the first call created without ``tf.get_variable``, in their order."""
        return [each.variable.op.name for made in self._made.values() for each in made]

    @contextlib.contextmanager
    def copy(self) -> Iterator[None]:
        """Separate one call of the model inside this context, and gradients of its result, from other copies.

        Inside, the graph's collections have only entries of this copy, and a layer that several copies call has only
        losses of this copy.
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
        """Note that operations created inside, together with a variable, belong to all copies."""
        begin = _operations()
        with self._collections.making():
            yield
        self._making.append(range(begin, _operations()))

    def of_others(self, index: int) -> Set[Any]:
        """Return the operations of all copies except copy ``index``, without those created together with a variable."""
        copies, made = self.operations, {op for part in _within(self._making) for op in part}
        return {op for copy in copies for op in copy} - {*copies[index]} - made

    @property
    def operations(self) -> List[List[Any]]:
        """Return the operations of the graph that each copy created, including its gradients, in their order."""
        return _within(self.copies)

    def later_operations(self) -> Set[Any]:
        """Return the operations that copies after the first created."""
        return {op for copy in self.operations[1:] for op in copy}

    def call(
        self, model: Callable[..., Any], batch: Mapping[str, Any], scope: str, who: str, training: Optional[bool] = None
    ) -> Any:
        """Return the result of ``model`` for ``batch``, built in the name scope ``scope``.

        Inside the context ``copy`` the call is part of that copy; otherwise it is a copy of its own.

        Args:
          who: the name of this copy of the model in errors.
          training: the mode of Keras layers that are called without a mode; None leaves Keras unchanged. With True, the
            updates of Keras layers join ``tf.GraphKeys.UPDATE_OPS``.

        Raises:
          NotShared: a call after the first created variables of its own.
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
        # The first call creates the variables, or finds them if the caller's scope reuses; later calls reuse them.
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
    """One call of the model: it notes the variables that it creates, or returns noted variables.

    Args:
      outer: the name scope around the call, ``""`` or one with a slash at its end.
      making: a context for creating variables that all copies share.
    """

    def __init__(self, made: Dict[str, List[_Made]], is_first: bool, who: str, outer: str, making: Callable[[], Any]):
        self._made, self._is_first, self._who, self._outer, self._making = made, is_first, who, outer, making
        self._inner = ""  # the name scope of the call itself
        self._asked: Counts[str] = Counter()
        self._is_getting = False

    @contextlib.contextmanager
    def within(self, scope: str) -> Iterator[None]:
        """Let the model create and find variables inside this context, in the name scope ``scope``.

        Variables that are named after a tensor, such as the tensor's average, have names without ``scope``.
        """
        get = functools.partial(self._get, f"{scope}/")
        reusing = tf.variable_scope(tf.get_variable_scope(), reuse=not self._is_first, custom_getter=get)
        with reusing, tf.name_scope(scope) as self._inner, tf.variable_creator_scope(self.create):
            yield

    def _get(self, scope: str, getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        """Replace ``tf.get_variable``, which finds a variable again in its own way."""
        if not self._is_first and tf.is_tensor(kwargs.get("initializer")):
            kwargs["dtype"] = kwargs["initializer"].dtype.base_dtype  # as TensorFlow did in the first call
        before, self._is_getting = self._is_getting, True
        try:
            with self._making():
                return getter(name[len(scope) :] if name.startswith(scope) else name, *args, **kwargs)
        finally:
            self._is_getting = before

    def create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Create or find the variable that the model requests: a creator for ``tf.variable_creator_scope``.

        Raises:
          NotShared: the same lines of the model created another variable in the first call.
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
        """Return the current name scope of the model, without the scope of the call itself."""
        scope = _scope()  # the author may have left the scope of the call
        return self._outer + scope[len(self._inner) :] if scope.startswith(self._inner) else scope

    def _find(self, name: str, kwargs: Mapping[str, Any], site: Site) -> Optional[Any]:
        made, index = self._made.get(name, []), self._asked[name]
        self._asked[name] += 1
        if index >= len(made) or not made[index].variable.shape.is_compatible_with(_shape(kwargs)):
            return None
        self._check(name, made[index], site)
        return made[index].variable

    def _check(self, name: str, made: _Made, site: Site) -> None:
        """Refuse a counted name that means another layer here, because the first call had more layers."""
        there = [each.variable.op.name for of_name in self._made.values() for each in of_name if each.site == site]
        if there and made.site != site:
            raise NotShared(
                f"{self._who} asks for {name} where the first tower made {', '.join(there)};"
                " choose unique names for layers and variables that only some towers have",
                made.variable.op,
            )


def _within(parts: Sequence[range]) -> List[List[Any]]:
    """Return the operations of the graph in each of these intervals."""
    operations = tf.get_default_graph().get_operations()
    return [operations[part.start : part.stop] for part in parts]


def _operations() -> int:
    return len(tf.get_default_graph().get_operations())


def _scope() -> str:
    """Return the current name scope, with a slash at its end; ``""`` outside all scopes."""
    scope: str = tf.get_default_graph().get_name_scope()
    return scope + "/" if scope else ""


def _is_global(kwargs: Mapping[str, Any]) -> bool:
    """Return whether a variable belongs to the model, and is not a counter of one copy.

    The counters are, for example, those of ``tf.metrics``.
    """
    collections = kwargs.get("collections")
    return collections is None or tf.GraphKeys.GLOBAL_VARIABLES in collections


def _shape(kwargs: Mapping[str, Any]) -> Any:
    """Return the shape of the requested variable, as far as it is known."""
    shape: Any = kwargs.get("shape")
    value: Any = kwargs.get("initial_value")
    if shape is not None:
        return tf.TensorShape(shape)
    value = value() if callable(value) else value
    return tf.TensorShape(value.shape if hasattr(value, "shape") else tf.convert_to_tensor(value).shape)


def _site() -> Site:
    """Return the lines of the model that led here, without lines of libraries."""
    inside = takewhile(
        lambda each: each[0].f_code is not Sharing._call.__code__, traceback.walk_stack(sys._getframe(1))
    )
    return tuple(
        (frame.f_code.co_filename, line)
        for frame, line in inside
        if str(frame.f_globals.get("__name__")).split(".")[0] not in _LIBRARIES
    )
