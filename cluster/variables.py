"""How a job's ``tf.get_variable`` makes variables that are shared by a cluster.

    a table (only rows of it are taken)   stays on its servers; rows are looked up there
    one that has a dense gradient         the worker has a copy, which is renewed once a step
    any other                             read once per step into the worker's host memory
    each, where it is too large           in slices on several servers; the job sees it whole

The job's code is the same for all of them.
"""

import copy
import re
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from cluster.copies import Copies
from cluster.engine import tf
from cluster.measuring import Measured
from cluster.parcels import packed
from cluster.partition import SLICES, Cut, cuts, piece_bytes, slice_shapes, slice_sizes
from cluster.tables import as_table


@dataclass(frozen=True, eq=False)
class Source:
    """What a gradient is taken of: a variable, or one that is cut as the model reads it.

    ``value`` is the tensor that losses are computed with; of one that is cut it is made of its slices once a step, for
    all towers. ``variables`` are the slices.
    """

    name: str
    value: Any
    variables: List[Any]
    cut: Optional[Cut] = None

    def split(self, grad: Any) -> List[Tuple[Any, Any]]:
        """The (gradient, variable) pairs of a gradient: one, or one for each slice."""
        if self.cut is None:
            return [(grad, self.variables[0])]
        lengths = list(self.cut.lengths(tuple(self.value.shape.as_list())))
        return list(zip(tf.split(grad, lengths, self.cut.axis), self.variables))


class SharedVariables:
    """Makes the measured variables of a model, on one worker.

    Args:
      measured: what ``cluster.measuring.measure`` found in this very model.
      num_ps: number of parameter servers.
      host: the device of the worker's memory.
      slices: how many of what travels whole fill a server.

    ``sizes`` has the bytes of every variable, or slice of one, by the name of its operation.
    """

    def __init__(self, measured: Mapping[str, Measured], num_ps: int, host: str, slices: int = SLICES):
        self.measured = measured
        self._cuts = cuts(measured, num_ps, slices)
        self._piece, self._host = piece_bytes(measured, num_ps, slices), host
        self.sizes: Dict[str, int] = slice_sizes(measured, self._cuts)
        self._wholes: Dict[str, Source] = {}

    def copies(self, servers: Mapping[str, int]) -> Copies:
        """The worker's copies of what has a dense gradient, in the current graph.

        Backpropagation comes to the variables that were made last first, so their parcels go first.

        Args:
          servers: the index of the server of each variable or slice.
        """
        shapes = slice_shapes({name: each for name, each in self.measured.items() if each.is_dense}, self._cuts)
        parcels = packed(list(shapes)[::-1], self.sizes, servers, self._piece)
        return Copies(parcels, shapes, self._host)

    def scope(self, copies: Optional[Copies] = None) -> Any:
        """The variable scope in which the model must be built; what has a copy is read from there."""

        def get(getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
            return self._get(copies, getter, name, *args, **kwargs)

        return tf.variable_scope(tf.get_variable_scope(), custom_getter=get, caching_device=self._host)

    def sources(self, copies: Copies) -> List[Source]:
        """What gradients are taken of in this graph. That of a variable that is cut is averaged and checked whole."""
        wholes = {part.op.name: whole for whole in self._wholes.values() for part in whole.variables}
        found: Dict[str, Source] = {}
        for variable in tf.trainable_variables():
            name = variable.op.name
            source = wholes.get(name) or Source(name, copies.values.get(name, variable), [variable])
            found[source.name] = source
        return list(found.values())

    def read_bytes(self, name: str, wire: str = "float32") -> int:
        """Bytes of the model's variable or slice called ``name`` that a worker reads in a step, at most.

        Args:
          wire: the numbers in which values travel of which workers have copies.
        """
        of = name if name in self.measured else whole(name)
        measured, size = self.measured[of], self.sizes[name]
        if measured.is_dense:
            return size // measured.item_bytes * int(tf.as_dtype(wire).size)
        if measured.lookups is None:
            return size
        parts = self._cuts[of].parts if of in self._cuts else 1
        return min(size, measured.lookups * measured.bytes // measured.shape[0] // parts)

    def _get(self, copies: Optional[Copies], getter: Callable[..., Any], name: str, *args: Any, **kwargs: Any) -> Any:
        cut, measured = self._cuts.get(name), self.measured.get(name)
        if measured is None:
            return getter(name, *args, **kwargs)
        if measured.lookups is not None or measured.is_dense:
            kwargs.update(use_resource=False)
        if measured.lookups is not None:
            kwargs.update(caching_device=None)
        slices = [getter(name, *args, **kwargs)] if cut is None else _slices(getter, cut, name, *args, **kwargs)
        if copies is not None:
            copies.adopt(slices)
        if measured.lookups is not None:
            return as_table(slices, self._host)
        if cut is None:
            return slices[0]
        if copies is not None and measured.is_dense:
            return self._whole(name, slices, cut)
        return _joined(slices, cut)

    def _whole(self, name: str, slices: List[Any], cut: Cut) -> Any:
        if name not in self._wholes:
            # Outside any loop or branch that the model may be in, as other towers will use it too.
            with tf.control_dependencies(None), tf.device(self._host):
                self._wholes[name] = Source(name, _joined(slices, cut), slices, cut)
        return self._wholes[name].value


def _joined(slices: List[Any], cut: Cut) -> Any:
    return tf.concat([tf.convert_to_tensor(part) for part in slices], cut.axis)


def whole(name: str) -> str:
    """The variable that ``w/part_0`` is a slice of; any other name is its own."""
    return re.sub(r"/part_\d+$", "", name)


def _slices(getter: Callable[..., Any], cut: Cut, name: str, *args: Any, **kwargs: Any) -> List[Any]:
    def partitioner(shape: Any, dtype: Any) -> List[int]:
        return [cut.parts if axis == cut.axis else 1 for axis in range(shape.ndims)]

    kwargs.update(partitioner=partitioner, initializer=_for_slices(kwargs.get("initializer")))
    return list(getter(name, *args, **kwargs))


def _for_slices(initializer: Any) -> Any:
    """The same initializer for a slice: with a seed of its own, else all would be alike, or its part of an array."""
    seed, value = getattr(initializer, "seed", None), getattr(initializer, "value", None)
    if not callable(initializer) or (seed is None and np.ndim(value) == 0):
        return initializer

    def initialise(shape: Any, dtype: Any = None, partition_info: Any = None) -> Any:
        part, offset = copy.copy(initializer), partition_info.var_offset
        if seed is not None:
            part.seed = seed + sum(offset)
        else:
            part.value = np.asarray(value)[tuple(slice(at, at + length) for at, length in zip(offset, shape))]
        return part(shape, dtype=dtype, partition_info=partition_info)

    return initialise
