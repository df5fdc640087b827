"""The folder of a run's checkpoints. One chief at a time writes into it, and restores its newest readable checkpoint.

The rule also holds when two hosts share the folder. A chief that opens the folder writes a note there, ``owner.json``,
and reads the note before every save. If another chief has replaced it while it was cut off, it finds the other chief's
note. Then it stops, and writes nothing.

    the note when a chief opens the folder      what the chief does
    none, or unreadable                         writes its own note
    of an earlier attempt of the chief's run    writes its own note
    of a later attempt of the chief's run       stops
    of another run, and the chief belongs to    writes its own note: somebody has started the run with
      the first attempt of its own run            this folder on purpose
    of another run, and the chief belongs to    stops: the other run has taken the folder meanwhile
      a later attempt of its own run

Before a run begins in a folder, its host removes the note there (``launch.agent.checkpoints.resume``). So if a later
attempt finds the note of another run, that note is not older than its own run.

    the note before a save                      what the chief does
    its own                                     saves
    none, or unreadable                         writes its own note
    of an earlier attempt of the chief's run    writes its own note again: the earlier chief was delayed between reading
                                                  and writing the note, and stops before its next save
    any other                                   stops

So nothing depends on the clocks of two hosts. The note is not a lock: a chief that is delayed between reading the note
and saving does not stop. No folder on shared storage has locks on which all hosts agree.
"""

import json
import os
import shutil
import socket
import uuid
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional

from cluster.checkpoints.finished_files import NOT_IN_CHECKPOINT
from cluster.errors import CheckpointError
from cluster.protocol import checkpoint_files
from cluster.protocol.checkpoint_files import StoredCheckpoint
from cluster.protocol.shared_files import replace_file
from cluster.runtime.tf_compat import tf
from cluster.runtime.tf_errors import line_of, reason_of


class Owner(NamedTuple):
    """The identity of a chief process. ``attempt`` counts from 0 within ``run``; ``life`` is unique to the process."""

    run: str
    attempt: int
    host: str
    pid: int
    life: str

    @classmethod
    def of_this_process(cls, environ: Mapping[str, str]) -> "Owner":
        """Return the identity of this process, from the launcher's variables in ``environ``.

        A process that was started by hand counts as a run of its own.
        """
        pid = os.getpid()
        attempt = environ.get("LAUNCH_ATTEMPT", "0")
        run = environ.get("LAUNCH_RUN") or f"by hand, pid {pid}"
        return cls(run, int(attempt) if attempt.isdigit() else 0, socket.gethostname(), pid, uuid.uuid4().hex)

    def __str__(self) -> str:
        return f"{self.run} (attempt {self.attempt}, pid {self.pid} on {self.host})"


class Ownership:
    """One chief's claim to write into a folder of checkpoints."""

    def __init__(self, folder: Path, owner: Owner):
        self._folder, self._note, self._own = folder, folder / checkpoint_files.OWNER, owner

    def take(self) -> None:
        """Claim the folder for this chief: write its note into the folder.

        Raises:
          CheckpointError: the folder already belongs to a chief that replaced this one.
          OSError: the note cannot be written.
        """
        found = self._read()
        if found is not None and found.life != self._own.life and not self._may_follow(found):
            raise self._replaced_by(found)
        self._write()

    def check(self) -> None:
        """Check that the folder still belongs to this chief.

        If the note is missing, or an earlier attempt of the same run has overwritten it, the chief writes it again. If
        the note is of another run, the chief gives up the folder: nothing shows which of the two runs began later.

        Raises:
          CheckpointError: another chief has taken the folder.
          OSError: the chief must write its note again and cannot.
        """
        found = self._read()
        if found is not None and found.life == self._own.life:
            return
        if found is not None and not self._succeeds(found):
            raise self._replaced_by(found)
        self._write()

    def _may_follow(self, found: Owner) -> bool:
        """Return whether this chief may take the folder from another one."""
        return self._own.attempt >= found.attempt if found.run == self._own.run else self._own.attempt == 0

    def _succeeds(self, found: Owner) -> bool:
        """Return whether this chief is a later attempt of the run of ``found``."""
        return self._own.run == found.run and self._own.attempt > found.attempt

    def _replaced_by(self, found: Owner) -> CheckpointError:
        return CheckpointError(
            f"checkpoint folder {self._folder}: expected no other writer than {self._own}, found that {found} has taken"
            " the folder since; end one of the two runs, or give each a train.checkpoint.dir of its own"
        )

    def _write(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._note, json.dumps(self._own._asdict()))

    def _read(self) -> Optional[Owner]:
        try:
            values: Dict[str, Any] = json.loads(self._note.read_text())
            return Owner(**values)
        except (OSError, ValueError, TypeError):
            return None


class PassedOver(NamedTuple):
    """Unreadable checkpoints that a restore skipped: the newest one's step, the restored step, a text about both."""

    newest: int
    restored: int
    text: str


class OwnedFolder:
    """The folder of a run's checkpoints. Without a folder no checkpoints exist, and the chief must not write any.

    Args:
      load: a function that restores the checkpoint at a path into the variables of a session.

    ``passed_over`` describes the unreadable checkpoints that a restore last skipped; None if no restore skipped any.
    """

    def __init__(self, folder: Optional[str], load: Callable[[Any, str], None]):
        self._folder, self._load, self.described = folder, load, f"{folder} on {socket.gethostname()}"
        self._owner = Ownership(Path(folder), Owner.of_this_process(os.environ)) if folder else None
        self.passed_over: Optional[PassedOver] = None

    def take(self) -> None:
        """Claim the folder for this chief; see ``Ownership.take``."""
        if self._owner is not None:
            self._owner.take()

    def check(self) -> None:
        """Check before a save that the folder exists and still belongs to this chief; see ``Ownership.check``."""
        if self._owner is not None:
            self._owner.check()
        Path(str(self._folder)).mkdir(parents=True, exist_ok=True)

    def prefix(self, step: int) -> str:
        """Return the path of the checkpoint of ``step``; the checkpoint need not exist."""
        return os.path.join(str(self._folder), f"{checkpoint_files.OURS}-{step}")

    def remove(self, step: int) -> None:
        """Remove all files of the checkpoint of a step."""
        shutil.rmtree(self.prefix(step) + checkpoint_files.PARTIAL, ignore_errors=True)
        checkpoint_files.remove(self.prefix(step))

    def remove_unfinished(self) -> None:
        """Remove the files that a chief left when it was killed."""
        if self._folder:
            checkpoint_files.remove_unfinished(Path(self._folder))

    def prune(self, newest: StoredCheckpoint, keep: int, spared: Optional[int]) -> None:
        """Remove old checkpoints, and write TensorFlow's list of the remaining ones. Raises OSError.

        The method keeps the ``keep`` newest checkpoints up to ``newest``, and the checkpoint of the step ``spared``.
        """
        folder = Path(str(self._folder))
        kept = checkpoint_files.prune(folder, newest, keep, spared)
        checkpoint_files.write_list(folder, [os.path.basename(each.path) for each in reversed(kept)])

    def stored(self) -> List[StoredCheckpoint]:
        """Return the checkpoints of the folder, newest first. Raises OSError where the folder cannot be read."""
        return checkpoint_files.list_checkpoints(Path(self._folder)) if self._folder else []

    def path_of(self, step: Optional[int]) -> Optional[str]:
        """Return the path of the checkpoint of a step; None where it does not exist."""
        try:
            return next((each.path for each in self.stored() if each.step == step), None)
        except OSError:
            return None

    def restore(self, session: Any, saved_step: Optional[int]) -> Optional[StoredCheckpoint]:
        """Restore the newest readable checkpoint into the variables, and return it; None where the folder has none.

        The method prints unreadable checkpoints and sets them aside: their files remain, but they no longer count.

        Args:
          saved_step: the step of the newest checkpoint that this run has saved; None before the first.

        Raises:
          CheckpointError: a checkpoint does not have this job's variables, or no checkpoint is readable, or the
            checkpoints that this run has saved are missing.
          OSError: the folder cannot be read.
        """
        unreadable: Dict[StoredCheckpoint, str] = {}  # with the reasons
        for each in self.stored():
            reason = self._why_unreadable(session, each.path)
            if reason is None:
                self._pass_over(unreadable, each)
                return each
            unreadable[each] = reason
        if unreadable:
            raise CheckpointError(
                f"checkpoints on {socket.gethostname()}: expected a readable one, found only unreadable ones:"
                f" {_list(unreadable)}; replace one with a good copy, or set another train.checkpoint.dir"
            )
        if saved_step is not None:
            raise CheckpointError(
                f"checkpoint folder {self._folder} on {socket.gethostname()}: expected the checkpoint of step"
                f" {saved_step}, which this run has saved, found none; put it back and continue with --resume"
            )
        return None

    def _why_unreadable(self, session: Any, path: str) -> Optional[str]:
        """Restore a checkpoint and return None, or return why the checkpoint cannot be read."""
        try:
            self._load(session, path)
        except _REFUSED as error:
            if _is_of_another_job(error):
                raise CheckpointError(
                    f"checkpoint {path}: expected this job's variables, found others ({line_of(error)});"
                    " train with the job that wrote it, or set another train.checkpoint.dir"
                ) from error
            return reason_of(error)
        return None

    def _pass_over(self, unreadable: Dict[StoredCheckpoint, str], good: StoredCheckpoint) -> None:
        if not unreadable:
            return
        newest, host = max(unreadable).step, socket.gethostname()
        text = f"unreadable checkpoints on {host} were set aside: {_list(unreadable)}; continuing from {good.path}"
        self.passed_over = PassedOver(newest, good.step, text)
        print(text, flush=True)
        for each in unreadable:
            checkpoint_files.set_aside(each.path)


NOT_WRITTEN = (
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
    """Return whether a checkpoint can be read, but has not this job's variables."""
    if isinstance(error, tf.errors.NotFoundError):
        return NOT_IN_CHECKPOINT in str(error)
    return isinstance(error, tf.errors.InvalidArgumentError)


def _list(unreadable: Dict[StoredCheckpoint, str]) -> str:
    return ", ".join(f"{each.path} ({reason})" for each, reason in unreadable.items())
