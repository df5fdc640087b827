"""Checkpoints of one run: written and read by the chief alone, in a folder on its host."""

import os
import time
from typing import Any, Dict, List, Optional

from cluster.engine import tf
from cluster.errors import TrainingError
from cluster.remote_files import Noticeboard
from cluster.task import Checkpoint


class Checkpoints:
    """Saves all variables into one file on the chief's host, so no shared filesystem is needed.

    Make it while the chief's graph is the default one. With no folder it does nothing.
    """

    def __init__(self, settings: Checkpoint, variables: List[Any], host: str, folder: Optional[str]):
        self.folder = folder
        self.step: Optional[int] = None  # of the newest checkpoint, once there is one
        self.path: Optional[str] = None
        self._every_s = settings.every_s
        self._saved_at = time.monotonic()
        with tf.device(host):
            self._saver = tf.train.Saver(variables, sharded=False, max_to_keep=settings.keep, save_relative_paths=True)
        self._board = Noticeboard(host)

    def restore(self, session: Any) -> bool:
        """Gives the variables the values of the newest checkpoint; False where there is none.

        Raises:
          TrainingError: the newest checkpoint is not one of this job's variables.
        """
        path = tf.train.latest_checkpoint(self.folder) if self.folder else None
        if path is None:
            return False
        try:
            self._saver.restore(session, path)
        except (tf.errors.NotFoundError, tf.errors.InvalidArgumentError, ValueError) as error:
            raise TrainingError(
                f"checkpoint {path}: expected this job's variables, found others ({_first_line(error)});"
                " train with the job that wrote it, or take another checkpoint.dir"
            ) from error
        self._found(path)
        return True

    def adopt(self) -> None:
        """Finds what an earlier chief of this run has saved, without restoring it."""
        path = tf.train.latest_checkpoint(self.folder) if self.folder else None
        if path is not None:
            self._found(path)

    def save_if_due(self, session: Any, step: int) -> None:
        """Saves when ``every_s`` has passed; training goes on if that fails."""
        if self.folder and time.monotonic() - self._saved_at >= self._every_s:
            self.save_now(session, step)

    def save_now(self, session: Any, step: int) -> None:
        """Saves unless this step is saved already; training goes on if that fails."""
        if self.folder and self.step != step:
            self._saved_at = time.monotonic()
            try:
                self._save(session, step)
            except _FAILURES as error:
                print(f"checkpoint at step {step} not written into {self.folder}: {_first_line(error)}", flush=True)

    def told(self) -> Dict[str, Any]:
        """Fields of ``Progress``."""
        return {"checkpoint_step": self.step}

    def save_last(self, session: Any, step: int) -> None:
        """Saves the final checkpoint.

        Raises:
          TrainingError: it cannot be written.
        """
        if self.folder and self.step != step:
            try:
                self._save(session, step)
            except _FAILURES as error:
                raise TrainingError(
                    f"the final checkpoint, step {step}, cannot be written into {self.folder}: {_first_line(error)};"
                    " make the folder writable, or set train.checkpoint.dir"
                ) from error

    def _save(self, session: Any, step: int) -> None:
        os.makedirs(str(self.folder), exist_ok=True)
        prefix = os.path.join(str(self.folder), "model")
        path = str(self._saver.save(session, prefix, global_step=step, write_meta_graph=False))
        self.path, self.step = path, step
        self._board.show(session, os.path.abspath(path))

    def _found(self, path: str) -> None:
        self.path, self.step = path, int(path.rpartition("-")[2])
        state = tf.train.get_checkpoint_state(self.folder)
        self._saver.recover_last_checkpoints(state.all_model_checkpoint_paths)  # so that ``keep`` counts them


_FAILURES = (
    OSError,
    ValueError,
    tf.errors.NotFoundError,
    tf.errors.PermissionDeniedError,
    tf.errors.FailedPreconditionError,
    tf.errors.ResourceExhaustedError,
    tf.errors.UnknownError,
    tf.errors.InternalError,
)


def _first_line(error: BaseException) -> str:
    return (getattr(error, "message", None) or str(error)).strip().split("\n")[0]
