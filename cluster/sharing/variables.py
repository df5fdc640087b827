"""One set of variables for a model that is built several times in one graph: in each tower, and for the evaluation.

    tf.get_variable                       a variable scope that reuses finds the variable again
    tf.Variable, tf.keras.layers, models  the first build notes each variable by its name; a later one gets it back

Variables have the names that they would have in a model that is built once, without any tower:
``dense/kernel``, not ``tower_0/dense/kernel``.
"""

import sys
import traceback
from collections import Counter
from itertools import takewhile
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Tuple
from typing import Counter as Counts

from cluster.runtime.tf_compat import tf
from cluster.sharing import keras_graphs
from cluster.sharing.graph_collections import Collections

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
    """The variables of one model in one graph: the first call makes them, later ones get the same."""

    def __init__(self) -> None:
        self._made: Dict[str, List[_Made]] = {}
        self._collections = Collections()
        self._keras_names: Optional[Dict[str, int]] = None  # as they were before the first call

    @property
    def counted_names(self) -> List[str]:
        """Return the names of variables that the first call made without ``tf.get_variable``, in their order."""
        return [each.variable.op.name for made in self._made.values() for each in made]

    def call(
        self, model: Callable[..., Any], batch: Mapping[str, Any], scope: str, who: str, training: Optional[bool] = None
    ) -> Any:
        """Return what ``model`` returns for ``batch``, built in the name scope ``scope``.

        Args:
          who: calls this copy of the model by name in an error.
          training: the mode of Keras layers that are called without one; None leaves Keras as it is. Of a copy that
            trains, the updates of Keras layers join ``tf.GraphKeys.UPDATE_OPS``.

        Raises:
          NotShared: a call after the first made variables of its own.
        """
        is_first, outer = self._keras_names is None, _scope()
        known = len(tf.global_variables())
        if self._keras_names is None:
            self._keras_names = keras_graphs.names()
        keras_graphs.rename_from(self._keras_names)
        # The first call makes the variables, or finds them as the caller's scope says; the rest reuse.
        with self._reusing(is_first, scope), tf.name_scope(scope) as inner, keras_graphs.layers(training):
            build = _Build(self._made, is_first, who, outer, inner, self._collections)
            with self._collections.alone(), tf.variable_creator_scope(build.create):
                output = model(**batch)
        if not is_first:
            refuse_new_variables(who, known)
        return output

    @staticmethod
    def _reusing(is_first: bool, scope: str) -> Any:
        """The variable scope of one call, without whose name are variables named after a tensor, as its average is."""

        def get(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
            return getter(name[len(scope) + 1 :] if name.startswith(f"{scope}/") else name, *args, **kwargs)

        return tf.variable_scope(tf.get_variable_scope(), reuse=not is_first, custom_getter=get)


class _Build:
    """One call of the model: it notes what is made, or hands out what was noted.

    Args:
      outer: the name scope around the call, ``""`` or one with a slash at its end.
      inner: the name scope of the call itself.
    """

    def __init__(
        self,
        made: Dict[str, List[_Made]],
        is_first: bool,
        who: str,
        outer: str,
        inner: str,
        collections: Collections,
    ):
        self._made, self._is_first, self._who, self._outer, self._inner = made, is_first, who, outer, inner
        self._collections = collections
        self._asked: Counts[str] = Counter()

    def create(self, next_creator: Callable[..., Any], **kwargs: Any) -> Any:
        """Make or find the variable that the model asks for: a creator for ``tf.variable_creator_scope``.

        Raises:
          NotShared: the same lines of the model made another variable in the first call.
        """
        # tf.get_variable leaves the name scope, and has a way of its own to find a variable again.
        if not _scope().startswith(self._inner) or not _is_global(kwargs):
            return self._note(next_creator(**kwargs), kwargs)
        scope = self._outer + _scope()[len(self._inner) :]
        name = scope + (kwargs.get("name") or "Variable")
        site = _site()
        found = None if self._is_first else self._find(name, kwargs, site)
        if found is not None:
            return found
        with tf.name_scope(scope or None):
            variable = self._note(next_creator(**kwargs), kwargs)
        if self._is_first:
            self._made.setdefault(name, []).append(_Made(variable, site))
        return variable

    def _note(self, variable: Any, kwargs: Mapping[str, Any]) -> Any:
        if self._is_first:
            self._collections.note(variable, kwargs.get("collections") or [])
        return variable

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
    inside = takewhile(lambda each: each[0].f_code is not Sharing.call.__code__, traceback.walk_stack(sys._getframe(1)))
    return tuple(
        (frame.f_code.co_filename, line)
        for frame, line in inside
        if str(frame.f_globals.get("__name__")).split(".")[0] not in _LIBRARIES
    )
