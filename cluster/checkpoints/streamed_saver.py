"""Checkpoints that pass through their writer's memory piece by piece, so that it need not hold the model.

TensorFlow's own saver fetches all variables at once. Here a piece is fetched, written into a file of its own, and
forgotten before the next. A variable that is larger than a piece is cut on the server that holds it, so only the cut
travels. TensorFlow then merges the files into an ordinary checkpoint, which its own saver reads. What that one writes
is read here.

Pieces of one checkpoint are read at different moments, as are the variables in TensorFlow's own.
"""

import ctypes
import os
import shutil
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from cluster.protocol.checkpoint_files import PARTIAL
from cluster.runtime.tf_compat import tf
from cluster.variables.saved import Saved, Shape, elements

# A server cuts a piece into memory of its own. The C library gives blocks of 32 MiB and more back at once, and a piece
# of whole rows is a little smaller than this. Of smaller blocks servers were seen to keep hundreds of megabytes.
PIECE_BYTES = 36 << 20
MOST_PIECES = 256  # each is a file, and whoever reads the checkpoint may hold all open; larger models: larger pieces


Box = Tuple[Shape, Shape]  # where it begins, and its size
_Step = Tuple[Any, Dict[Any, Any]]  # an operation, and what it is fed
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of malloc.h
_LIBC = ctypes.CDLL(None)


def boxes(shape: Shape, most: int) -> Iterator[Box]:
    """Yields contiguous parts of at most ``most`` elements that together are the whole, in order."""
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


class StreamedSaver:
    """Saves and restores variables in pieces, through the memory of ``host``, which is this process.

    Make it before the graph is finalized. A piece is of ``piece_bytes`` or less, but for models so large that
    there would be more than ``MOST_PIECES``.
    """

    def __init__(self, saved: Sequence[Saved], host: str, piece_bytes: int = PIECE_BYTES):
        self._saved = list(saved)
        self._piece_bytes = max(piece_bytes, sum(each.bytes for each in saved) // MOST_PIECES)
        large = [each for each in saved if each.bytes > self._piece_bytes]
        small = [each for each in saved if each.bytes <= self._piece_bytes]
        with tf.device(host):
            self._fed = _Fed.made()
            self._merge = tf.raw_ops.MergeV2Checkpoints(
                checkpoint_prefixes=self._fed.names, destination_prefix=self._fed.path, delete_old_dirs=False
            )
            read = {dtype: self._fed.read(dtype) for dtype in {each.dtype for each in large}}
            self._large = [_Large(each, self._fed, read[each.dtype]) for each in large]
            self._together = [_Together(some, self._fed) for some in _filled(small, self._piece_bytes)]

    # -- writing

    def save(self, session: Any, path: str) -> None:
        """Writes a checkpoint at ``path``, in place of one that is there; either all of it or nothing is found there.

        Raises:
          tf.errors.OpError: a file cannot be written, or a variable cannot be read.
          OSError: a file cannot be made or renamed.
        """
        partial = path + PARTIAL
        shutil.rmtree(partial, ignore_errors=True)
        os.mkdir(partial)
        try:
            with _giving_back():
                self._write(session, partial)
            _publish(os.path.join(partial, "merged"), path)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _write(self, session: Any, folder: str) -> None:
        """Writes one piece after the other into ``folder``, and merges them there."""
        pieces: List[str] = []
        for operation, feed in self._writes():
            pieces.append(os.path.join(folder, f"piece-{len(pieces)}"))
            session.run(operation, {**feed, self._fed.path: pieces[-1]})
            _give_back()
        session.run(self._merge, {self._fed.names: pieces, self._fed.path: os.path.join(folder, "merged")})

    def _writes(self) -> Iterator[_Step]:
        """Yields for each piece the operation that writes it, and what that is fed."""
        for together in self._together:
            yield together.write, {}
        for large in self._large:
            for feed in large.feeds(self._piece_bytes):
                yield large.write, feed

    # -- reading

    def restore(self, session: Any, path: str) -> None:
        """Gives all variables their values in the checkpoint at ``path``, whoever wrote it.

        Variables are as they were if it lacks one, or has one of another shape or type. If a file turns out to
        be damaged later on, some have their values from it and others are as they were, or zero.

        Raises:
          ValueError: there is none.
          tf.errors.NotFoundError: a variable, or a file, is missing.
          tf.errors.InvalidArgumentError: a variable is of another shape or type.
          tf.errors.DataLossError, tf.errors.OutOfRangeError: a file is damaged, or ends too early.
        """
        self._refuse_others(path)
        with _giving_back():
            for operation, feed in self._loads(session, max(self._piece_bytes, _largest_file(path))):
                session.run(operation, {**feed, self._fed.path: path})
                _give_back()

    def _loads(self, session: Any, piece_bytes: int) -> Iterator[_Step]:
        """Yields for each piece the operation that reads it, and what that is fed."""
        for together in self._together:
            yield together.load, {}
        ready = session.run([large.is_ready for large in self._large])
        for large, is_ready in zip(self._large, ready):
            if not is_ready:
                yield large.blank, large.whole
            for feed in large.feeds(piece_bytes):
                yield large.load, feed

    def _refuse_others(self, path: str) -> None:
        """Refuses a checkpoint of other variables, in the words of TensorFlow's own saver."""
        if not os.path.exists(f"{path}.index"):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        reader = _reader(path)
        shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        for each in self._saved:
            if each.name not in shapes:
                raise tf.errors.NotFoundError(None, None, f"Key {each.name} not found in checkpoint")
            found = dtypes[each.name], tuple(shapes[each.name])
            if found != (each.dtype, each.full_shape):
                raise tf.errors.InvalidArgumentError(None, None, _differs(each, *found))


@dataclass(frozen=True)
class _Fed:
    """The placeholders of every piece: so the graph is the same for few and many."""

    path: Any  # of a checkpoint
    names: Any  # of one tensor; of checkpoints to merge
    spec: Any  # what ``Saved.spec`` returns, as a list of one
    begin: Any
    size: Any

    @classmethod
    def made(cls) -> "_Fed":
        """Make the placeholders, on the current device."""
        path, names, spec = (tf.placeholder(tf.string, shape) for shape in ([], [None], [1]))
        return cls(path, names, spec, tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None]))

    def read(self, dtype: Any) -> Any:
        """Returns a piece of a checkpoint's tensor of this type."""
        (piece,) = tf.raw_ops.RestoreV2(
            prefix=self.path, tensor_names=self.names, shape_and_slices=self.spec, dtypes=[dtype]
        )
        return piece


class _Large:
    """A variable of several pieces."""

    def __init__(self, saved: Saved, fed: _Fed, read: Any):
        self._saved, self._fed = saved, fed
        self.whole = {fed.size: saved.shape}  # what ``blank`` is fed
        variable = saved.variable
        with _at(variable):
            piece = _cut(saved, fed)
            self.is_ready: Any = _is_ready(variable)
            # Part of a variable can be assigned only once it has a value. This one is made where it stays.
            self.blank: Any = tf.assign(variable, tf.fill(fed.size, tf.zeros([], saved.dtype))).op
            self.load: Any = _assign_part(variable, fed, read)
        self.write: Any = tf.raw_ops.SaveV2(
            prefix=fed.path, tensor_names=[saved.name], shape_and_slices=fed.spec, tensors=[piece]
        )

    def feeds(self, piece_bytes: int) -> Iterator[Dict[Any, Any]]:
        """Yields what ``write`` and ``load`` are fed, for one piece after the other."""
        fed, saved = self._fed, self._saved
        for begin, size in boxes(saved.shape, piece_bytes // saved.dtype.size):
            yield {fed.begin: begin, fed.size: size, fed.spec: [saved.spec(begin, size)], fed.names: [saved.name]}


class _Together:
    """Variables that are one piece."""

    def __init__(self, saved: Sequence[Saved], fed: _Fed):
        names, dtypes = [each.name for each in saved], [each.dtype for each in saved]
        specs = [each.spec((0,) * len(each.shape), each.shape) for each in saved]
        values = [_value(each.variable) for each in saved]
        self.write: Any = tf.raw_ops.SaveV2(prefix=fed.path, tensor_names=names, shape_and_slices=specs, tensors=values)
        read = tf.raw_ops.RestoreV2(prefix=fed.path, tensor_names=names, shape_and_slices=specs, dtypes=dtypes)
        self.load: Any = tf.group(*(_assign(each.variable, value) for each, value in zip(saved, read)))


def _filled(saved: Sequence[Saved], piece_bytes: int) -> List[List[Saved]]:
    """Returns the variables in groups, none larger than a piece."""
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
    """Inside, operations are made where the variable is, and not where others around them are."""
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
    """Returns whether it has a value; TensorFlow's own function complains about results that nobody asked for."""
    if _is_reference(variable):
        return tf.raw_ops.IsVariableInitialized(ref=variable)
    return tf.raw_ops.VarIsInitializedOp(resource=variable.handle)


def _cut(saved: Saved, fed: _Fed) -> Any:
    """Returns a piece of the variable.

    To read a resource can mean to copy all of it, for every piece. Gathering copies only the rows.
    """
    variable, begin = saved.variable, fed.begin
    if _is_reference(variable):
        return tf.slice(variable, begin, fed.size)
    rows = tf.range(begin[0], begin[0] + fed.size[0])
    gathered = tf.raw_ops.ResourceGather(resource=variable.handle, indices=rows, dtype=saved.dtype)
    return tf.slice(gathered, tf.concat([[0], begin[1:]], axis=0), fed.size)


def _assign_part(variable: Any, fed: _Fed, value: Any) -> Any:
    box = {"begin": fed.begin, "end": fed.begin + fed.size, "strides": tf.ones_like(fed.begin), "value": value}
    if _is_reference(variable):
        return tf.raw_ops.StridedSliceAssign(ref=variable, **box).op
    return tf.raw_ops.ResourceStridedSliceAssign(ref=variable.handle, **box)


@contextmanager
def _giving_back() -> Iterator[None]:
    """Inside, blocks of 1 MiB and more go back to the system when they are freed.

    Otherwise the C library keeps them, in each thread that received a piece. Afterwards it does so again, as it
    does by itself once it has seen large blocks.
    """
    try:
        _set_allocator(_M_MMAP_THRESHOLD, 1 << 20)
        yield
    finally:
        _set_allocator(_M_MMAP_THRESHOLD, 32 << 20)
        _set_allocator(_M_TRIM_THRESHOLD, 64 << 20)


def _set_allocator(option: int, value: int) -> None:
    with suppress(AttributeError):  # another C library than GNU's
        _LIBC.mallopt(option, value)


def _give_back() -> None:
    """Gives memory that small blocks took back to the system."""
    with suppress(AttributeError):
        _LIBC.malloc_trim(0)


def _publish(merged: str, path: str) -> None:
    """Gives a finished checkpoint its name; the index goes first and comes last, so that no half of one counts."""
    if os.path.exists(f"{path}.index"):
        os.unlink(f"{path}.index")
    for old in _data_files(path):  # of which there may be more, or fewer
        old.unlink()
    for file in _data_files(merged):
        os.replace(str(file), path + file.name[len(os.path.basename(merged)) :])
    os.replace(f"{merged}.index", f"{path}.index")


def _reader(path: str) -> Any:
    try:
        return tf.train.NewCheckpointReader(path)
    except tf.errors.OpError as error:
        if type(error) is not tf.errors.OpError:
            raise
        raise tf.errors.DataLossError(None, None, str(error)) from error  # TensorFlow 2 tells it in words only


def _data_files(path: str) -> List[Path]:
    """Returns a checkpoint's files but for its index."""
    start = os.path.basename(path) + ".data-"
    return [file for file in Path(path).parent.iterdir() if file.name.startswith(start)]


def _largest_file(path: str) -> int:
    """Returns the size of the largest of a checkpoint's files, than which no tensor in it is larger.

    To read a part of a tensor, TensorFlow reads all of what was written at once. So another program's
    checkpoint is not read in pieces smaller than its own.
    """
    return max((file.stat().st_size for file in _data_files(path)), default=0)


def _differs(saved: Saved, dtype: Any, shape: Shape) -> str:
    return (
        f"{saved.name}: expected {saved.dtype.name} of shape {list(saved.full_shape)},"
        f" found {dtype.name} of shape {list(shape)}"
    )
