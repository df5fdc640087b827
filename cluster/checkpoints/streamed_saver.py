"""Write and read checkpoints piece by piece, so that the model need not fit into the memory of this process.

TensorFlow's own saver fetches all variables at once. This saver fetches a piece, writes it into a file of its own, and
frees it before the next piece. If a variable is larger than a piece, its server cuts it, so only the piece is sent.
TensorFlow then merges the files into an ordinary checkpoint, which TensorFlow's saver can read. This saver also reads
the checkpoints of TensorFlow's saver.

Pieces of one checkpoint are read at different moments, as are variables in TensorFlow's own saver.

Rows (``row_pieces``) may be written ahead of their checkpoint, while training continues. The checkpoint is then a
delta: it consists of these pieces and of the rows that have changed since.
"""

import os
import shutil
from typing import Any, Callable, Iterable, Iterator, List, NamedTuple, Optional, Sequence

from cluster.checkpoints.finished_files import NOT_IN_CHECKPOINT, largest_file, open_reader, publish
from cluster.checkpoints.live_save import LastPieces, PieceFiles
from cluster.checkpoints.pieces_of_variables import Fed, LargeVariable, SmallVariables, Step, Write, group_by_size
from cluster.checkpoints.row_pieces import MOST_PIECES, RowFiles, RowPieces, RowsOf
from cluster.protocol.checkpoint_files import PARTIAL
from cluster.runtime.process import return_large_blocks, trim_memory
from cluster.runtime.tf_compat import tf
from cluster.variables.layout import Saved
from cluster.variables.profile import Shape

# A server cuts a piece into memory of its own. The C library returns blocks of 32 MiB and more at once, and a piece of
# whole rows is a little smaller than PIECE_BYTES. With smaller blocks, servers kept hundreds of megabytes.
PIECE_BYTES = 36 << 20


class WrittenPieces(NamedTuple):
    """All pieces of a checkpoint, in a separate folder, ready to be merged.

    ``base`` has the files of rows that earlier saves wrote; None if the new pieces have all rows.
    """

    path: str
    folder: str
    pieces: PieceFiles
    base: Optional[RowFiles]


class StreamedSaver:
    """A saver that writes and restores variables in pieces, through the memory of ``host``, which is this process.

    Create the saver before the graph is finalized. A piece has at most ``piece_bytes``, except in models so large that
    they would have more than ``MOST_PIECES`` pieces.

    A delta writes only the rows that have changed since the last checkpoint, and links to all others. ``deltas``:
    whether to keep the files from which a delta continues. The attribute ``rows`` has the rows that are already
    written.
    """

    def __init__(
        self,
        saved: Sequence[Saved],
        host: str,
        piece_bytes: int = PIECE_BYTES,
        rows: Optional[RowsOf] = None,
        deltas: bool = False,
    ):
        self._saved = list(saved)
        self._piece_bytes = max(piece_bytes, sum(each.bytes for each in saved) // MOST_PIECES)
        large = [each for each in saved if each.bytes > self._piece_bytes]
        small = [each for each in saved if each.bytes <= self._piece_bytes]
        with tf.device(host):
            self._fed = Fed.make()
            self._merge = tf.raw_ops.MergeV2Checkpoints(
                checkpoint_prefixes=self._fed.names, destination_prefix=self._fed.path, delete_old_dirs=False
            )
            read = {dtype: self._fed.read(dtype) for dtype in {each.dtype for each in large}}
            self._large = [LargeVariable(each, self._fed, read[each.dtype]) for each in large]
            self._together = [
                SmallVariables(some, self._fed, f"-variables-{number}")
                for number, some in enumerate(group_by_size(small, self._piece_bytes))
            ]
            self.rows = RowPieces(rows(self._fed) if rows else [], self._fed, deltas)
            # More small variables than fit into a piece would need more memory of servers, and of this process.
            copied = self._together[:1] if self.rows.saved else []
            self._last = LastPieces(copied, self.rows.saved, self._fed)
        self._warm_for: Any = None  # the session that has prepared all operations of a save

    # -- writing

    def save(self, session: Any, path: str, is_delta: bool = False) -> None:
        """Write a checkpoint at ``path``, and replace an old one. The path then has the whole checkpoint or nothing.

        Args:
          is_delta: whether to link the rows that have not changed since the last call, if these rows are known.

        Raises:
          tf.errors.OpError: a file cannot be written, or a variable cannot be read.
          OSError: a file cannot be created or renamed.
        """
        self.publish(session, self.write(session, path, is_delta))

    def write(self, session: Any, path: str, is_delta: bool = False) -> WrittenPieces:
        """Write and return all pieces of the checkpoint at ``path``: the part of ``save`` that reads variables."""
        are_few_left, base = self.rows.are_few_left, self.rows.take_base()
        if base is not None and not is_delta:
            base.remove()
            base = None
        partial = path + PARTIAL
        shutil.rmtree(partial, ignore_errors=True)
        os.mkdir(partial)
        try:
            with return_large_blocks():
                old = self.rows.pieces_of(base, partial) if base is not None else []
                if base is not None and are_few_left:
                    own = self._write_at_once(session, partial)
                else:
                    own = self._write(session, partial, self._writes(session, base is not None))
        except BaseException:
            _give_up(partial, base)
            raise
        self._warm_for = session
        return WrittenPieces(path, partial, own._replace(paths=[*old, *own.paths]), base)

    def publish(self, session: Any, written: WrittenPieces) -> None:
        """Merge the pieces ``written`` into a checkpoint: the part of ``save`` during which variables may change."""
        merged, base = os.path.join(written.folder, "merged"), written.base
        try:
            written.pieces.wait()
            base = self.rows.base_with(written.path, base, written.pieces.of_rows)
            session.run(self._merge, {self._fed.names: written.pieces.paths, self._fed.path: merged})
            publish(merged, written.path)
        except BaseException:
            _give_up(written.folder, base)
            raise
        shutil.rmtree(written.folder, ignore_errors=True)
        self.rows.base = base

    def write_ahead(self, session: Any, path: str, is_delta: bool, goes_on: Callable[[], bool]) -> None:
        """Write rows for the checkpoint at ``path`` while training continues, so that few rows remain for a delta.

        Afterwards ``rows.are_ahead`` is true if all rows have been written at least once.

        Args:
          is_delta: whether to continue from the last checkpoint, if its rows are known.
          goes_on: called before each piece; returns whether to write the piece.

        Raises:
          tf.errors.OpError, OSError: as for ``save``.
        """
        self._warm_up(session, path + PARTIAL)
        if self.rows.saved:
            self.rows.write_ahead(session, path, self._piece_bytes, is_delta, goes_on)
            trim_memory()

    def _warm_up(self, session: Any, folder: str) -> None:
        """Let TensorFlow prepare the operations of ``write``: the preparation takes as long as many steps."""
        if self._warm_for is session:
            return
        os.makedirs(folder, exist_ok=True)
        try:
            path = os.path.join(folder, "warm")
            self._last.begin(session, path, is_rehearsal=True).wait()
            counts = [write for saved in self.rows.saved for write in saved.counts()]
            large = [Write(each.write, next(each.feeds(self._piece_bytes))) for each in self._large]
            for write in [*large, *counts]:
                session.run(write.operation, {**write.feed, self._fed.path: path})
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        self._warm_for = session

    def _write(self, session: Any, folder: str, writes: Iterable[Write]) -> PieceFiles:
        """Write the pieces into ``folder``, one after the other."""
        pieces: List[str] = []
        of_rows: List[str] = []
        for number, write in enumerate(writes):
            path = os.path.join(folder, f"piece-{number}")
            session.run(write.operation, {**write.feed, self._fed.path: path})
            pieces.append(path + write.ending)
            of_rows += pieces[-1:] if write.has_rows else []
            trim_memory()
        return PieceFiles(pieces, of_rows)

    def _write_at_once(self, session: Any, folder: str) -> PieceFiles:
        """Write the pieces like ``_write``, where few rows remain, but return before the rows are written."""
        others = self._write(session, folder, self._others())
        last = self._last.begin(session, os.path.join(folder, "last"))
        return last._replace(paths=[*others.paths, *last.paths])

    def _others(self) -> Iterator[Write]:
        """Yield the writes of all pieces except the last ones."""
        yield from (together.write for together in self._together[1:])
        yield from self._of_large()
        for saved in self.rows.saved:
            yield from saved.counts()

    def _writes(self, session: Any, is_delta: bool) -> Iterator[Write]:
        """Yield the write of each piece."""
        yield from (together.write for together in self._together)
        yield from self._of_large()
        for saved in self.rows.saved:
            yield from saved.rows(session, self._piece_bytes, is_delta)
            yield from saved.counts()
            yield saved.head()

    def _of_large(self) -> Iterator[Write]:
        for large in self._large:
            yield from (Write(large.write, feed) for feed in large.feeds(self._piece_bytes))

    # -- reading

    def restore(self, session: Any, path: str) -> None:
        """Give all variables their values from the checkpoint at ``path``, whichever program wrote it.

        If the checkpoint lacks a variable, or has it with another shape or type, all variables stay unchanged. If a
        file turns out later to be damaged, some variables have values from the checkpoint; others are unchanged, or
        zero.

        Raises:
          ValueError: the checkpoint does not exist.
          tf.errors.NotFoundError: a variable, or a file, is missing.
          tf.errors.InvalidArgumentError: a variable has another shape or type.
          tf.errors.DataLossError, tf.errors.OutOfRangeError: a file is damaged, or ends too early.
        """
        self.rows.forget()
        self._refuse_others(path)
        with return_large_blocks():
            for operation, feed in self._loads(session, max(self._piece_bytes, largest_file(path))):
                session.run(operation, {**feed, self._fed.path: path})
                trim_memory()
            for saved in self.rows.saved:
                for operation, feed in saved.loads(open_reader(path)):
                    session.run(operation, {**feed, self._fed.path: path})

    def _loads(self, session: Any, piece_bytes: int) -> Iterator[Step]:
        """Yield the operation that reads each piece, and its feeds."""
        for together in self._together:
            yield together.load, {}
        ready = session.run([large.is_ready for large in self._large])
        for large, is_ready in zip(self._large, ready):
            if not is_ready:
                yield large.blank, large.whole
            for feed in large.feeds(piece_bytes):
                yield large.load, feed

    def _refuse_others(self, path: str) -> None:
        """Refuse a checkpoint of other variables, in the words of TensorFlow's own saver."""
        if not os.path.exists(f"{path}.index"):
            raise ValueError(f"The passed save_path is not a valid checkpoint: {path}")
        reader = open_reader(path)
        shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        for each in self._saved:
            if each.name not in shapes:
                raise tf.errors.NotFoundError(None, None, f"Key {each.name} {NOT_IN_CHECKPOINT}")
            found = dtypes[each.name], tuple(shapes[each.name])
            if found != (each.dtype, each.full_shape):
                raise tf.errors.InvalidArgumentError(None, None, _differs(each, *found))
        for saved in self.rows.saved:
            saved.refuse_others(reader)


def _give_up(folder: str, base: Optional[RowFiles]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if base is not None:
        base.remove()


def _differs(saved: Saved, dtype: Any, shape: Shape) -> str:
    return (
        f"{saved.name}: expected {saved.dtype.name} of shape {list(saved.full_shape)},"
        f" found {dtype.name} of shape {list(shape)}"
    )
