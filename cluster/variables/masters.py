"""The variables on the parameter servers: whole, or in slices that the model does not know.

In the graph of every worker they are under the scope ``servers/``: ``servers/w``, ``servers/w/part_3``, and the slots
of an optimizer, ``servers/w/Adam``. Checkpoints have them under the author's names.
"""

import copy
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import declare, variable_of
from cluster.runtime.tf_compat import tf
from cluster.variables.layout import Layout, Saved
from cluster.variables.placement import Piece
from cluster.variables.uses import ancestors

SCOPE = "servers"
# Initializers that draw, or set, each element independently.
_ELEMENTWISE = (
    tf.zeros_initializer,
    tf.ones_initializer,
    tf.random_uniform_initializer,
    tf.random_normal_initializer,
    tf.truncated_normal_initializer,
    tf.variance_scaling_initializer,
)


def plain_name(variable: Any) -> str:
    """Return the author's name of a variable on the servers; for a slice, a name such as ``w/part_3``."""
    return author_name(variable.op)


def author_name(op: Any) -> str:
    """Return the name of an operation on the servers as the author wrote it, without the scope ``servers/``."""
    name: str = op.name
    return name[len(SCOPE) + 1 :] if name.startswith(f"{SCOPE}/") else name


def saved_variables(variables: Sequence[Any]) -> List[Saved]:
    """Return ``variables``, each with its name and its place in a checkpoint.

    Args:
      variables: variables of the servers, or slots of an optimizer.
    """
    return [_saved(each) for each in variables]


def _saved(variable: Any) -> Saved:
    info = variable._get_save_slice_info()
    if info is None:
        shape = tuple(variable.shape.as_list())
        return Saved(plain_name(variable), variable, shape, (0,) * len(shape))
    return Saved(info.full_name, variable, tuple(info.full_shape), tuple(info.var_offset))


class Masters:
    """The servers' variables for the variables of a worker's graph; the object creates them.

    Args:
      mirrors: the worker's variables, by name.
      initializers: the author's initializers in ``tf.get_variable``, by name, where they are known.
      servers: the index of the server of each piece.
      made: the whole variables, by name, if they are already in the graph.
    """

    def __init__(
        self,
        layout: Layout,
        servers: Mapping[str, int],
        mirrors: Mapping[str, Any],
        initializers: Mapping[str, Any],
        made: Optional[Mapping[str, Any]] = None,
    ):
        self._layout, self._servers, self._mirrors, self._initializers = layout, servers, mirrors, initializers
        self._given = made or {}
        with tf.control_dependencies(None):
            self._nothing = tf.no_op()
        self.pieces: Dict[str, List[Any]] = {
            name: [self._adopt(name, made[name])]
            if made
            else [self._make(name, piece) for piece in layout.pieces(name)]
            for name in layout.profiles
        }

    @property
    def all(self) -> List[Any]:
        """Return all pieces, in the order in which the model created their variables."""
        return [piece for pieces in self.pieces.values() for piece in pieces]

    def _adopt(self, name: str, made: Any) -> Any:
        """Give a whole variable the same place in a checkpoint as the author's variable."""
        (piece,) = self._layout.pieces(name)
        made._set_save_slice_info(self._slice_info(name, piece))
        return made

    def _make(self, name: str, piece: Piece) -> Any:
        with tf.device(ps_device(self._servers[piece.name])):
            made = self._draw(name, piece) if self._draws_its_own(name) else self._declare(name, piece)
        made._set_save_slice_info(self._slice_info(name, piece))
        return made

    def _draw(self, name: str, piece: Piece) -> Any:
        """Return a variable with an initializer of its own."""
        mirror = self._mirrors[name]
        initializer = _for_piece(self._initializers.get(name), piece, self._layout.profiles[name].shape)
        return tf.get_variable(
            f"{SCOPE}/{piece.name}",
            piece.shape,
            mirror.dtype.base_dtype,
            initializer,
            trainable=False,
            collections=[],
            use_resource=False,
            constraint=mirror.constraint,
        )

    def _declare(self, name: str, piece: Piece) -> Any:
        """Create a variable that receives its first value from the chief's own variable."""
        mirror = self._mirrors[name]
        held = declare(f"{SCOPE}/{piece.name}", piece.shape, mirror.dtype.base_dtype)
        made = variable_of(held, self._nothing)
        made._constraint = mirror.constraint
        return made

    def _slice_info(self, name: str, piece: Piece) -> Any:
        """Return the place of a piece in the variable of a checkpoint.

        An author may also have cut a variable by a partitioner. The result is None for a variable that is not cut.
        """
        own = self._mirrors[name]._get_save_slice_info()
        if own is None and piece.name == name:
            return None
        full_name, full, begin = name, self._layout.profiles[name].shape, (0,) * len(piece.offset)
        if own is not None:
            full_name, full, begin = own.full_name, own.full_shape, own.var_offset
        offset = [one + other for one, other in zip(begin, piece.offset)]
        return tf.Variable.SaveSliceInfo(full_name, list(full), offset, list(piece.shape))

    def _draws_its_own(self, name: str) -> bool:
        """Return whether the servers create the first value of a variable themselves.

        The servers create the first value of a table if its initializer is elementwise: a table may be larger than the
        chief's memory. A value of ``tf.train.init_from_checkpoint`` is on the chief's host, and takes its place.
        """
        is_elementwise = self.is_table(name) and _is_elementwise(self._initializers.get(name))
        return name not in self._given and is_elementwise and not _is_restored(self._mirrors[name])

    def is_table(self, name: str) -> bool:
        """Return whether a step takes only rows of the variable."""
        return self._layout.profiles[name].lookups is not None

    def split(self, name: str, value: Any) -> List[Any]:
        """Return the parts of ``value``, a whole value of the variable ``name``, one for each piece of the variable."""
        cut = self._layout.cuts.get(name)
        if cut is None:
            return [value]
        return list(tf.split(value, list(cut.lengths(self._layout.profiles[name].shape)), cut.axis))

    def join(self, name: str, values: Sequence[Any]) -> Any:
        """Return the whole value of the variable ``name`` from ``values``, the values of its pieces."""
        return values[0] if name not in self._layout.cuts else tf.concat(values, self._layout.cuts[name].axis)

    def write(self, name: str, value: Any) -> List[Any]:
        """Return the operations that give the pieces of the variable ``name`` their parts of ``value``."""
        return [tf.assign(piece, part).op for piece, part in zip(self.pieces[name], self.split(name, value))]

    def read(self, name: str) -> Any:
        """Return the whole value of the variable ``name`` on the servers, joined on the current device."""
        return self.join(name, [piece.read_value() for piece in self.pieces[name]])

    def first_values(self) -> Any:
        """Return the chief's operation that gives all pieces their first values.

        Run the operation once the chief's own variables have their first values. The first value of a table is created
        whole only where its initializer needs the whole shape.
        """
        given = []
        for name, mirror in self._mirrors.items():
            if self._draws_its_own(name):
                given += [piece.initializer for piece in self.pieces[name]]
            else:
                given += self.write(name, mirror.initial_value if self.is_table(name) else mirror.read_value())
        return tf.group(*given)


def _is_elementwise(initializer: Any) -> bool:
    if isinstance(initializer, tf.constant_initializer):
        return bool(np.ndim(initializer.value) == 0)
    return any(kind in _ELEMENTWISE for kind in type(initializer).__mro__[:2])  # glorot's extends variance scaling


def _is_restored(variable: Any) -> bool:
    """Return whether a checkpoint has the first value of a variable, as after ``tf.train.init_from_checkpoint``."""
    return any(op.type == "RestoreV2" for op in ancestors([variable.initial_value]))


def _for_piece(initializer: Any, piece: Piece, full: Tuple[int, ...]) -> Any:
    """Return the initializer for a slice, with a seed of its own: with one seed, all slices would be equal."""
    part = copy.copy(initializer)
    if getattr(part, "seed", None) is not None:
        part.seed = part.seed + sum(piece.offset)

    def initialise(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        if not isinstance(part, tf.variance_scaling_initializer):
            return part(shape, dtype=dtype)
        return part(shape, dtype=dtype, partition_info=_Whole(list(full)))

    return initialise


class _Whole(NamedTuple):
    """The shape of the whole variable, by which an initializer scales a slice."""

    full_shape: List[int]
