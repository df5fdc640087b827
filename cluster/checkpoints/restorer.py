"""Restore the newest checkpoint of a folder that can be read, and name those that cannot."""

import socket
from pathlib import Path
from typing import Any, Dict, List, NamedTuple, Optional

from cluster.checkpoints.stored_tables import NOT_IN_CHECKPOINT
from cluster.checkpoints.streamed_saver import StreamedSaver
from cluster.errors import CheckpointError
from cluster.protocol import checkpoint_files
from cluster.protocol.checkpoint_files import StoredCheckpoint
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of, reason_of


class PassedOver(NamedTuple):
    """Checkpoints that could not be read: the step of the newest, the step that was restored, and both in words."""

    newest: int
    restored: int
    text: str


class Restorer:
    """Restore checkpoints of a folder; without a folder there are none.

    ``passed_over`` is what the newest restore that had to pass over any has passed over; None where none had to.
    """

    def __init__(self, saver: StreamedSaver, folder: Optional[str]):
        self._saver, self._folder = saver, folder
        self.passed_over: Optional[PassedOver] = None

    def stored(self) -> List[StoredCheckpoint]:
        """Return the checkpoints of the folder, newest first. Raises OSError: it cannot be read."""
        return checkpoint_files.list_checkpoints(Path(self._folder)) if self._folder else []

    def restore(self, session: Any, saved_step: Optional[int]) -> Optional[StoredCheckpoint]:
        """Give the variables the values of the newest checkpoint that can be read, and return it; None without any.

        Those that cannot be read are named and set aside: their files stay, but they count no more.

        Args:
          saved_step: of the newest checkpoint that this run has saved; None if it has saved none.

        Raises:
          CheckpointError: a checkpoint is not one of this job's variables, or none can be read, or
            those that this run has saved are gone.
          OSError: the folder cannot be read.
        """
        unreadable: Dict[StoredCheckpoint, str] = {}  # and the reason
        for each in self.stored():
            reason = self._why_unreadable(session, each.path)
            if reason is None:
                self._pass_over(unreadable, each)
                return each
            unreadable[each] = reason
        if unreadable:
            raise CheckpointError(
                f"checkpoints on {socket.gethostname()}: expected one that can be read, found none:"
                f" {_list(unreadable)}; put a good copy in their place, or set another train.checkpoint.dir"
            )
        if saved_step is not None:
            raise CheckpointError(
                f"checkpoint folder {self._folder} on {socket.gethostname()}: expected the checkpoint of step"
                f" {saved_step}, which this run has saved, found none; put it back and continue with --resume"
            )
        return None

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

    def _pass_over(self, unreadable: Dict[StoredCheckpoint, str], good: StoredCheckpoint) -> None:
        if not unreadable:
            return
        newest, host = max(unreadable).step, socket.gethostname()
        text = f"checkpoints that cannot be read on {host}, set aside: {_list(unreadable)}; continuing from {good.path}"
        self.passed_over = PassedOver(newest, good.step, text)
        print(text, flush=True)
        for each in unreadable:
            checkpoint_files.set_aside(each.path)


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


def _list(unreadable: Dict[StoredCheckpoint, str]) -> str:
    return ", ".join(f"{each.path} ({reason})" for each, reason in unreadable.items())
