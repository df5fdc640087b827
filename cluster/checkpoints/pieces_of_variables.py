"""The operations that write and read variables in pieces, on the servers that hold them.

A large variable consists of several pieces. Its server cuts each piece out of the variable, so only the piece is sent.
Small variables share one piece.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from cluster.runtime.server_state import copied
from cluster.runtime.tf_compat import tf
from cluster.variables.layout import Saved
from cluster.variables.profile import Shape, elements

Box = Tuple[Shape, Shape]  # the begin and the size of a part
Step = Tuple[Any, Dict[Any, Any]]  # an operation, and its feeds


def boxes(shape: Shape, most: int) -> Iterator[Box]:
    """Yield, in order, contiguous boxes of at most ``most`` elements that together cover a tensor of ``shape``."""
    axis = next((axis for axis in range(len(shape)) if elements(shape[axis + 1 :]) <= most), len(shape))
    if axis == len(shape) or elements(shape) == 0:
        yield (0,) * len(shape), shape
        return
    inner = shape[axis + 1 :]
    each = max(1, most // elements(inner))
    for outer in product(*(range(length) for length in shape[:axis])):
        for first in range(0, shape[axis], each):
            length = min(each, shape[axis] - first)
            yield (*outer, first, *(0 for _ in inner)), (*(1 for _ in outer), length, *inner)


class Write(NamedTuple):
    """An operation that writes a piece, together with all feeds of the operation except the path.

    The operation itself appends ``ending`` to the path, so that several operations can run at once. ``has_rows``:
    whether the piece has rows that a delta need not write again.
    """

    operation: Any
    feed: Dict[Any, Any]
    ending: str = ""
    has_rows: bool = False


@dataclass(frozen=True)
class Fed:
    """The placeholders that all pieces share, so that the graph has the same size for few and for many pieces."""

    path: Any  # of a checkpoint
    names: Any  # of one tensor; of checkpoints to merge
    spec: Any  # the result of ``Saved.spec``, in a list of one
    begin: Any
    size: Any

    @classmethod
    def make(cls) -> "Fed":
        """Create the placeholders, on the current device."""
        path, names, spec = (tf.placeholder(tf.string, shape) for shape in ([], [None], [1]))
        return cls(path, names, spec, tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None]))

    def save(self, ending: str, names: Any, values: Sequence[Any], specs: Optional[Sequence[str]] = None) -> Any:
        """Return the operation that writes the tensors ``values`` into a separate piece.

        Args:
          ending: the piece's path is the fed path followed by this ending.
          names: the name of each tensor in the checkpoint.
          specs: the result of ``Saved.spec`` for each tensor; by default, the tensors are whole.
        """
        return tf.raw_ops.SaveV2(
            prefix=tf.strings.join([self.path, ending]),
            tensor_names=names,
            shape_and_slices=specs or [""] * len(values),
            tensors=list(values),
        )

    def read(self, dtype: Any) -> Any:
        """Return the piece of a tensor, of type ``dtype``, that the fed path, name and slice choose in a checkpoint."""
        (piece,) = tf.raw_ops.RestoreV2(
            prefix=self.path, tensor_names=self.names, shape_and_slices=self.spec, dtypes=[dtype]
        )
        return piece


class LargeVariable:
    """The operations that write and read one variable in several pieces, because it is larger than a piece."""

    def __init__(self, saved: Saved, fed: Fed, read: Any):
        self._saved, self._fed = saved, fed
        self.whole = {fed.size: saved.shape}  # the feeds of ``blank``
        variable = saved.variable
        with _at(variable):
            piece = _cut(saved, fed)
            self.is_ready: Any = _is_ready(variable)
            # A part of a variable can be assigned only once the variable has a value. ``blank`` creates it on its own
            # device.
            self.blank: Any = tf.assign(variable, tf.fill(fed.size, tf.zeros([], saved.dtype))).op
            self.load: Any = _assign_part(variable, fed, read)
        self.write: Any = tf.raw_ops.SaveV2(
            prefix=fed.path, tensor_names=[saved.name], shape_and_slices=fed.spec, tensors=[piece]
        )

    def feeds(self, piece_bytes: int) -> Iterator[Dict[Any, Any]]:
        """Yield the feeds of ``write`` and ``load`` for each piece, which has at most ``piece_bytes`` bytes."""
        fed, saved = self._fed, self._saved
        for begin, size in boxes(saved.shape, piece_bytes // saved.dtype.size):
            yield {fed.begin: begin, fed.size: size, fed.spec: [saved.spec(begin, size)], fed.names: [saved.name]}


class SmallVariables:
    """The operations that write and read variables that share one piece, whose path ends with ``ending``."""

    def __init__(self, saved: Sequence[Saved], fed: Fed, ending: str):
        self._variables, self._fed = [each.variable for each in saved], fed
        self._names = names = [each.name for each in saved]
        dtypes = [each.dtype for each in saved]
        self._specs = specs = [each.spec((0,) * len(each.shape), each.shape) for each in saved]
        values = [_value(each) for each in self._variables]
        self.write = Write(fed.save(ending, names, values, specs), {}, ending)
        read = tf.raw_ops.RestoreV2(prefix=fed.path, tensor_names=names, shape_and_slices=specs, dtypes=dtypes)
        self.load: Any = tf.group(*(_assign(each.variable, value) for each, value in zip(saved, read)))

    def copies(self) -> List[Any]:
        """Return, for each variable, a tensor with a copy of its value."""
        return [copied(each) for each in self._variables]

    def write_copies(self, copies: Sequence[Any], ending: str) -> Write:
        """Return a ``Write`` of ``copies``, the variables' values, into a piece whose path ends with ``ending``."""
        return Write(self._fed.save(ending, self._names, copies, self._specs), {}, ending)


def group_by_size(saved: Sequence[Saved], piece_bytes: int) -> List[List[Saved]]:
    """Return the variables ``saved``, in order, in groups of at most ``piece_bytes``."""
    groups: List[List[Saved]] = []
    room = 0
    for each in saved:
        if not groups or each.bytes > room:
            groups.append([])
            room = piece_bytes
        groups[-1].append(each)
        room -= each.bytes
    return groups


@contextmanager
def _at(variable: Any) -> Iterator[None]:
    """Create operations inside on the variable's device, whatever device is current around them."""
    with tf.device(None), tf.device(variable.device):
        yield


def _value(variable: Any) -> Any:
    with _at(variable):
        return tf.identity(variable)


def _assign(variable: Any, value: Any) -> Any:
    with _at(variable):
        return tf.assign(variable, value).op


def _is_reference(variable: Any) -> bool:
    return bool(variable.dtype != variable.dtype.base_dtype)


def _is_ready(variable: Any) -> Any:
    """Return whether the variable has a value; TensorFlow's own function warns about unused results."""
    if _is_reference(variable):
        return tf.raw_ops.IsVariableInitialized(ref=variable)
    return tf.raw_ops.VarIsInitializedOp(resource=variable.handle)


def _cut(saved: Saved, fed: Fed) -> Any:
    """Return a piece of the variable.

    To read a resource may copy the whole resource for every piece. Gathering copies only the rows.
    """
    variable, begin = saved.variable, fed.begin
    if _is_reference(variable):
        return tf.slice(variable, begin, fed.size)
    rows = tf.range(begin[0], begin[0] + fed.size[0])
    gathered = tf.raw_ops.ResourceGather(resource=variable.handle, indices=rows, dtype=saved.dtype)
    return tf.slice(gathered, tf.concat([[0], begin[1:]], axis=0), fed.size)


def _assign_part(variable: Any, fed: Fed, value: Any) -> Any:
    box = {"begin": fed.begin, "end": fed.begin + fed.size, "strides": tf.ones_like(fed.begin), "value": value}
    if _is_reference(variable):
        return tf.raw_ops.StridedSliceAssign(ref=variable, **box).op
    return tf.raw_ops.ResourceStridedSliceAssign(ref=variable.handle, **box)
