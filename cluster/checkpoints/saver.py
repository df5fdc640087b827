"""Checkpoints of one run: written and read by the chief alone, in a folder on its host."""

import contextlib
import os
import socket
import time
from pathlib import Path
from typing import Any, Callable, ContextManager, Dict, List, Optional

from cluster.checkpoints.ownership import Owner, Ownership
from cluster.checkpoints.remote_files import Noticeboard
from cluster.checkpoints.stored_tables import NOT_IN_CHECKPOINT
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.errors import CheckpointError
from cluster.protocol import checkpoint_files
from cluster.protocol.checkpoint_files import StoredCheckpoint
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of, reason_of
from cluster.tables.stores import Stores
from cluster.task import Checkpoint
from cluster.variables.masters import saved_variables

RETRY_S = 20.0  # a save that failed is tried again after so long, where every_s is not less
LAST_S = 10.0  # how long the final save is tried
_PAUSE_S = 1.0


class Checkpoints:
    """Save all variables into files on the chief's host, so no shared filesystem is needed.

    Make it while the chief's graph is the default one. With no folder it does nothing.
    Training goes on when a save fails; ``problem`` then has the reason, until one succeeds.
    In the context that ``still`` makes of a session, variables and places of examples are of one moment.
    """

    def __init__(
        self,
        settings: Checkpoint,
        variables: List[Any],
        host: str,
        folder: Optional[str],
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        tables: Optional[Stores] = None,
        still: Callable[[Any], ContextManager[Any]] = lambda session: contextlib.nullcontext(),
    ):
        self.folder = folder
        self.step: Optional[int] = None  # of the newest checkpoint, once there is one
        self.path: Optional[str] = None
        self.problem: Optional[str] = None
        self.saves = 0  # by this process
        self.spared: Optional[int] = None  # the step of a checkpoint that stays, however old
        self._unwritable: Optional[str] = None  # why, as long as saves fail
        self._every_s, self._delta_every_s, self._keep = settings.every_s, settings.delta_every_s, settings.keep
        self._clock, self._pause = clock, pause
        self._saved_at = self._whole_at = clock()
        self._where = f"{folder} on {socket.gethostname()}"
        self._owner = Ownership(Path(folder), Owner.of_this_process(os.environ)) if folder else None
        deltas = self._delta_every_s is not None
        self._saver = StreamedSaver(saved_variables(variables), host, tables=tables, deltas=deltas)
        self._board, self._still = Noticeboard(host), still

    # -- reading

    def open(self) -> None:
        """Make the folder this chief's, and clear away what one that was killed has left.

        Raises:
          CheckpointError: another chief has replaced this one.
        """
        if self._owner is None:
            return
        try:
            self._owner.take()
        except OSError as error:
            self._unwritable = reason_of(error)
            self._say(f"checkpoints cannot be written into {self._where}: {self._unwritable}")
        checkpoint_files.remove_unfinished(Path(str(self.folder)))

    def restore(self, session: Any) -> bool:
        """Give the variables the values of the newest checkpoint that can be read; False where there is none.

        Those that cannot be read are named and set aside: their files stay, but they count no more.

        Raises:
          CheckpointError: a checkpoint is not one of this job's variables, or none can be read, or
            those that this run has saved are gone.
          OSError: the folder cannot be read.
        """
        unreadable: Dict[str, str] = {}  # path: reason
        for each in self._stored():
            reason = self._why_unreadable(session, each.path)
            if reason is None:
                self._pass_over(unreadable, each)
                self.path, self.step = each.path, each.step
                return True
            unreadable[each.path] = reason
        if unreadable:
            raise CheckpointError(
                f"checkpoints on {socket.gethostname()}: expected one that can be read, found none:"
                f" {_list(unreadable)}; put a good copy in their place, or set another train.checkpoint.dir"
            )
        if self.step is not None:
            raise CheckpointError(
                f"checkpoint folder {self._where}: expected the checkpoint of step {self.step}, which this run"
                " has saved, found none; put it back and continue with --resume"
            )
        return False

    def _why_unreadable(self, session: Any, path: str) -> Optional[str]:
        """Restore a checkpoint and return None, or why it cannot be read."""
        try:
            self._saver.restore(session, path)
        except _REFUSED as error:
            if _is_of_another_job(error):
                raise CheckpointError(
                    f"checkpoint {path}: expected this job's variables, found others ({line_of(error)});"
                    " train with the job that wrote it, or take another checkpoint.dir"
                ) from error
            return reason_of(error)
        return None

    def _pass_over(self, unreadable: Dict[str, str], good: StoredCheckpoint) -> None:
        if not unreadable:
            return
        for path in unreadable:
            checkpoint_files.set_aside(path)
        self._say(
            f"checkpoints that cannot be read on {socket.gethostname()}, set aside: {_list(unreadable)};"
            f" continuing from {good.path}"
        )

    def adopt(self) -> None:
        """Find what an earlier chief of this run has saved, without restoring it."""
        with contextlib.suppress(OSError):
            for newest in self._stored()[:1]:
                self.path, self.step = newest.path, newest.step

    def path_of(self, step: Optional[int]) -> Optional[str]:
        """Return the path of the checkpoint of a step; None where it is not there."""
        with contextlib.suppress(OSError):
            return next((each.path for each in self._stored() if each.step == step), None)
        return None

    def _stored(self) -> List[StoredCheckpoint]:
        return checkpoint_files.list_checkpoints(Path(self.folder)) if self.folder else []

    # -- writing

    def save_if_due(self, session: Any, step: int) -> None:
        """Save when ``every_s`` has passed; training goes on if that fails.

        Raises:
          CheckpointError: another chief has replaced this one; so for every save.
        """
        every_s = self._every_s if self._unwritable is None else min(self._every_s, RETRY_S)
        if self.folder and self._clock() - self._whole_at >= every_s:
            self.save_now(session, step)
        elif self.folder and self._is_delta_due():
            self.save_quickly(session, step)

    def _is_delta_due(self) -> bool:
        if self._delta_every_s is None or self._unwritable is not None:
            return False
        return self._clock() - self._saved_at >= self._delta_every_s

    def save_quickly(self, session: Any, step: int) -> None:
        """Save as ``save_now``, as a delta if this run makes deltas and has a checkpoint to continue from."""
        self.save_now(session, step, is_delta=self._saver.has_base)

    def save_now(self, session: Any, step: int, is_delta: bool = False) -> None:
        """Save unless this step is saved already; training goes on if that fails.

        Args:
          is_delta: whether to write only the rows of tables that have changed since the last save.
        """
        if not self.folder or self._has(step):
            return
        self._saved_at = self._clock()
        if not is_delta:
            self._whole_at = self._saved_at
        try:
            self._save(session, step, is_delta)
        except _FAILURES as error:
            self._unwritable = reason_of(error)
            checkpoint_files.remove(self._prefix(step))  # so that a full disk is not filled further
            self._say(f"checkpoints cannot be written into {self._where}: {self._unwritable}")
            return
        if self._unwritable is not None:
            print(f"checkpoints are written again into {self._where}, step {step}", flush=True)
        self.problem = self._unwritable = None

    def save_last(self, session: Any, step: int) -> None:
        """Save the final checkpoint, trying for ``LAST_S`` seconds.

        Raises:
          CheckpointError: it cannot be written.
        """
        until = self._clock() + LAST_S
        self.save_now(session, step)
        while self.folder and not self._has(step):
            if self._clock() >= until:
                raise CheckpointError(
                    f"the final checkpoint, step {step}, cannot be written into {self.folder}: {self._unwritable};"
                    " make the folder writable, or set train.checkpoint.dir"
                )
            self._pause(_PAUSE_S)
            self.save_now(session, step)

    def progress_fields(self) -> Dict[str, Any]:
        """Return the fields of ``Progress`` on checkpoints."""
        return {"checkpoint_step": self.step, "checkpoint_problem": self.problem}

    def _has(self, step: int) -> bool:
        return self.step == step and os.path.exists(f"{self.path}.index")

    def _save(self, session: Any, step: int, is_delta: bool) -> None:
        folder = Path(str(self.folder))
        if self._owner is not None:
            self._owner.check()
        folder.mkdir(parents=True, exist_ok=True)
        path = self._prefix(step)
        with self._still(session):
            self._saver.save(session, path, is_delta)
        self._end_deltas_without_links()
        checkpoint_files.make_durable(path)  # before older ones go
        self.path, self.step = path, step
        self.saves += 1
        kept = checkpoint_files.prune(folder, StoredCheckpoint(step, path), self._keep, self.spared)
        checkpoint_files.write_list(folder, [os.path.basename(each.path) for each in reversed(kept)])
        self._board.show(session, os.path.abspath(path))

    def _end_deltas_without_links(self) -> None:
        if self._delta_every_s is not None and not self._saver.deltas:
            self._delta_every_s = None
            print(f"no delta checkpoints in {self._where}: its file system has no hard links", flush=True)

    def _prefix(self, step: int) -> str:
        return os.path.join(str(self.folder), f"{checkpoint_files.OURS}-{step}")

    def _say(self, problem: str) -> None:
        """Print a problem once, however often it occurs."""
        if problem != self.problem:
            print(problem, flush=True)
        self.problem = problem


_FAILURES = (
    OSError,
    ValueError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.FailedPreconditionError,
    tf.errors.ResourceExhaustedError,
    tf.errors.OutOfRangeError,  # a file that would be too large
    tf.errors.UnknownError,
    tf.errors.InternalError,
)
_REFUSED = (
    ValueError,
    tf.errors.NotFoundError,
    tf.errors.InvalidArgumentError,
    tf.errors.DataLossError,
    tf.errors.OutOfRangeError,  # a file that ends too early
    tf.errors.PermissionDeniedError,
    tf.errors.UnknownError,
    tf.errors.InternalError,
)


def _is_of_another_job(error: Exception) -> bool:
    """Return whether a checkpoint can be read, but does not hold this job's variables."""
    if isinstance(error, tf.errors.NotFoundError):
        return NOT_IN_CHECKPOINT in str(error)
    return isinstance(error, tf.errors.InvalidArgumentError)


def _list(unreadable: Dict[str, str]) -> str:
    return ", ".join(f"{path} ({reason})" for path, reason in unreadable.items())
