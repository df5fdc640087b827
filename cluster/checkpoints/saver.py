"""Checkpoints of one run. Only the chief writes and reads them, in a folder on its host."""

import contextlib
import os
import time
from typing import Any, Callable, ContextManager, Dict, Iterator, List, Optional

from cluster.checkpoints.finished_files import Noticeboard
from cluster.checkpoints.live_save import LiveSave
from cluster.checkpoints.owned_folder import NOT_WRITTEN, OwnedFolder
from cluster.checkpoints.row_pieces import RowsOf
from cluster.checkpoints.streamed_saver import StreamedSaver, WrittenPieces
from cluster.errors import CheckpointError
from cluster.protocol import checkpoint_files
from cluster.protocol.checkpoint_files import StoredCheckpoint
from cluster.runtime.tf_errors import reason_of
from cluster.task import Checkpoint
from cluster.variables.masters import saved_variables

RETRY_S = 20.0  # a failed save is retried after this time, or after every_s if that is shorter
LAST_S = 10.0  # for how long the final save is retried
QUIET_S = 120.0  # a save that is silent for this time is reported
GIVEN_UP_S = 60.0  # how long a save may continue after its session was closed
_PAUSE_S = 1.0


class Checkpoints:
    """The checkpoints of all variables, in files on the chief's host, so no shared filesystem is needed.

    Create the object while the chief's graph is the default graph. Without a ``folder`` the object does nothing.
    Training continues when a save fails; ``problem`` then has the reason, until a save succeeds. ``rows`` creates the
    savers of the rows that a model has in addition to its variables. Inside the context ``still(session)``, all
    variables and all positions in the data belong to the same moment. ``while_training``: whether training may continue
    during a save; the attribute ``step`` then changes only some steps after the checkpoint's own step.
    """

    def __init__(
        self,
        settings: Checkpoint,
        variables: List[Any],
        host: str,
        folder: Optional[str],
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
        rows: Optional[RowsOf] = None,
        still: Callable[[Any], ContextManager[Any]] = lambda session: contextlib.nullcontext(),
        while_training: bool = True,
    ):
        self.folder = folder
        self.step: Optional[int] = None  # of the newest checkpoint; None before the first
        self.path: Optional[str] = None
        self.problem: Optional[str] = None
        self.whole_saves = 0  # by this process, without deltas
        self.spared: Optional[int] = None  # the step of a checkpoint that is kept, however old
        self._unwritable: Optional[str] = None  # the reason, as long as saves fail
        self._every_s, self._delta_every_s, self._keep = settings.every_s, settings.delta_every_s, settings.keep
        self._clock, self._pause = clock, pause
        self._saved_at = self._whole_at = clock()
        self._is_delta = False  # whether the newest save is a delta
        deltas = self._delta_every_s is not None
        self._saver = StreamedSaver(saved_variables(variables), host, rows=rows, deltas=deltas)
        self._files = OwnedFolder(folder, self._saver.restore)
        self._board, self._still = Noticeboard(host), still
        self._durable: Optional[int] = None  # the step of the newest checkpoint that is synced to disk
        self._while_training = while_training
        self._live: Optional[LiveSave] = None
        self._follows = False  # whether another live save begins after the current one

    # -- reading

    def open(self) -> None:
        """Take the folder for this chief, and remove the unfinished files of a chief that was killed.

        Raises:
          CheckpointError: another chief has replaced this one.
        """
        try:
            self._files.take()
        except OSError as error:
            self._note_unwritable(error)
        self._files.remove_unfinished()
        self._saver.rows.forget()  # they were removed with the folder's unfinished files

    def restore(self, session: Any) -> bool:
        """Restore the newest readable checkpoint, and return whether one exists; see ``OwnedFolder.restore``."""
        found = self._files.restore(session, self.step)
        if found is not None:
            self.path, self.step = found.path, found.step
        return found is not None

    def adopt(self) -> None:
        """Set ``path`` and ``step`` to the newest checkpoint of an earlier chief of this run, without restoring it."""
        with contextlib.suppress(OSError):
            for newest in self._files.stored()[:1]:
                self.path, self.step = newest.path, newest.step

    def path_of(self, step: Optional[int]) -> Optional[str]:
        """Return the path of the checkpoint of a step; None where it does not exist."""
        return self._files.path_of(step)

    # -- writing

    def save_if_due(self, session: Any, step: int) -> None:
        """Save if ``every_s`` or ``delta_every_s`` has passed, or continue a live save. Training survives failures.

        Raises:
          CheckpointError: another chief has replaced this one. Every method that saves raises this error.
        """
        every_s = self._every_s if self._unwritable is None else min(self._every_s, RETRY_S)
        if self._live is not None:
            self._go_on(self._live, session, step)
        elif self.folder and self._clock() - self._whole_at >= every_s:
            if self._while_training and self._saver.rows.saved:
                self._begin_live(session, step, is_delta=False)
            else:
                self.save_now(session, step)
        elif self.folder and self._is_delta_due():
            self.save_quickly(session, step)

    def _is_delta_due(self) -> bool:
        if self._delta_every_s is None or self._unwritable is not None:
            return False
        return self._clock() - self._saved_at >= self._delta_every_s

    def save_quickly(self, session: Any, step: int) -> None:
        """Save like ``save_now``, but only the changed rows (a delta) if files with all other rows already exist."""
        has_ahead = self._end_live()
        self._save(session, step, is_delta=has_ahead or self._saver.rows.has_base)

    def save_now(self, session: Any, step: int) -> None:
        """Save a whole checkpoint, unless ``step`` is already saved; training continues if the save fails."""
        self._end_live()
        self._save(session, step, is_delta=False)

    def _save(self, session: Any, step: int, is_delta: bool) -> None:
        if not self.folder or self._has(step):
            return
        self._note_begin(is_delta)
        with self._problems_noted(step):
            written = self._write(session, step, is_delta)
            self._publish(session, written, step)
            self._conclude(step)

    def _note_begin(self, is_delta: bool) -> None:
        self._saved_at, self._is_delta = self._clock(), is_delta
        if not is_delta:
            self._whole_at = self._saved_at

    @contextlib.contextmanager
    def _problems_noted(self, step: int) -> Iterator[None]:
        """Let a save inside fail; training continues."""
        try:
            yield
        except NOT_WRITTEN as error:
            self._live = None
            if self._durable != step:  # so that a full disk does not fill further
                self._files.remove(step)
            self._note_unwritable(error)

    def _note_unwritable(self, error: Exception) -> None:
        self._unwritable = reason_of(error)
        self._say(f"checkpoints cannot be written into {self._files.described}: {self._unwritable}")

    def save_last(self, session: Any, step: int) -> None:
        """Save the final checkpoint; if this fails, try again for ``LAST_S`` seconds.

        Raises:
          CheckpointError: the checkpoint cannot be written.
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
        """Return, by name, the values of the fields of ``Progress`` that describe checkpoints."""
        fields = {"checkpoint_step": self.step, "checkpoint_problem": self.problem}
        passed = self._files.passed_over
        if passed is not None:
            fields.update(passed_over=passed.text, passed_over_from=passed.newest, passed_over_to=passed.restored)
        return fields

    @property
    def has_passed_over(self) -> bool:
        """Return whether a restore has skipped unreadable checkpoints."""
        return self._files.passed_over is not None

    def _has(self, step: int) -> bool:
        return self.step == step and os.path.exists(f"{self.path}.index")

    def _write(self, session: Any, step: int, is_delta: bool) -> WrittenPieces:
        self._files.check()
        with self._still(session):
            return self._saver.write(session, self._files.prefix(step), is_delta)

    def _publish(self, session: Any, written: WrittenPieces, step: int) -> None:
        """Make a checkpoint of the written pieces, and remove old ones. Training may continue: no variable is read."""
        self._files.check()
        self._saver.publish(session, written)
        checkpoint_files.make_durable(written.path)  # before older checkpoints are removed
        self._durable = step
        self._files.prune(StoredCheckpoint(step, written.path), self._keep, self.spared)
        self._board.show(session, os.path.abspath(written.path))

    def _conclude(self, step: int) -> None:
        self.path, self.step = self._files.prefix(step), step
        self.whole_saves += not self._is_delta
        self._end_deltas_without_links()
        if self._unwritable is not None:
            print(f"checkpoints can be written again into {self._files.described}, since step {step}", flush=True)
        self.problem = self._unwritable = None

    # -- writing while training continues

    @property
    def is_saving(self) -> bool:
        """Return whether a live save has begun and is not complete; ``save_if_due`` continues it."""
        return self._live is not None

    def save_live(self, session: Any, step: int) -> None:
        """Begin a save that ``save_if_due`` continues between the next steps; the checkpoint is of one of these steps.

        If training may not continue during a save, save at once. If a live save already has its step, begin at its end.
        """
        if not self._while_training:
            self.save_quickly(session, step)
        elif self._live is None:
            self._begin_live(session, step, self._saver.rows.has_base)
        elif self._live.step is not None:  # the running save has a step, which is in the past
            self._follows = True

    def _begin_live(self, session: Any, step: int, is_delta: bool) -> None:
        if not self.folder or self._has(step):
            return
        self._note_begin(is_delta)
        with self._problems_noted(step):
            self._files.check()
            path = self._files.prefix(step)
            self._live = LiveSave(lambda goes_on: self._saver.write_ahead(session, path, is_delta, goes_on))

    def _go_on(self, live: LiveSave, session: Any, step: int) -> None:
        with self._problems_noted(step if live.step is None else live.step):
            if live.go_on(
                step,
                lambda: self._write(session, step, self._saver.rows.are_ahead),
                lambda written: self._publish(session, written, step),
            ):
                self._live = None
                self._conclude(int(live.step or 0))
            elif live.work.quiet_s > QUIET_S:
                where = self._files.described
                self._say(f"writing a checkpoint into {where} made no progress for {QUIET_S:.0f} s: check its disk")
        if self._live is None and self._follows:
            self._follows = False
            self._begin_live(session, step, self._saver.rows.has_base)

    def _end_live(self) -> bool:
        """End a live save at once; return whether the next save can continue from rows that were written ahead."""
        live, self._live, self._follows = self._live, None, False
        if live is None:
            return False
        with self._problems_noted(live.step or 0):
            if not live.end():
                return self._saver.rows.are_ahead
            self._conclude(int(live.step or 0))
        return False

    def ask_to_end(self) -> None:
        """Ask a live save to end soon, because its session is about to be closed."""
        if self._live is not None:
            self._live.work.ask_to_end()

    def give_up(self) -> None:
        """Forget the live save, if any, and the rows written so far, after their session was closed.

        Raises:
          CheckpointError: the save does not end within ``GIVEN_UP_S`` seconds.
        """
        live, self._live, self._follows = self._live, None, False
        if live is not None and not live.give_up(GIVEN_UP_S):
            where = self._files.described
            raise CheckpointError(f"a save into {where} still runs {GIVEN_UP_S:.0f} s after the end of its session")
        self._saver.rows.forget()

    def _end_deltas_without_links(self) -> None:
        if self._delta_every_s is not None and not self._saver.rows.deltas:
            self._delta_every_s = None
            print(f"no delta checkpoints in {self._files.described}: its file system has no hard links", flush=True)

    def _say(self, problem: str) -> None:
        """Print a problem once, however often it occurs."""
        if problem != self.problem:
            print(problem, flush=True)
        self.problem = problem
