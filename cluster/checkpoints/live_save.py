"""One checkpoint saved while training continues: most of it is written while the chief takes steps.

ahead    a thread writes rows (``row_pieces``), and then, repeatedly, the rows that have changed meanwhile
write    between two steps, the chief itself writes the rows changed since then, and all other values
publish  a thread merges these pieces into a checkpoint, and removes old checkpoints

One ``session.run`` reads the last changed rows on all servers. It delays training only until all values are read. Each
server copies its rows and small variables into separate memory, and then reports to the chief. The values are sent and
written afterwards, while training continues.
"""

import threading
import time
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

from cluster.checkpoints.pieces_of_variables import Fed, SmallVariables
from cluster.checkpoints.row_pieces import SavedRows
from cluster.runtime.tf_compat import tf


class Background:
    """A thread that runs ``work``. ``work`` receives a function, and calls it to ask whether to continue."""

    def __init__(self, work: Callable[[Callable[[], bool]], None]):
        self._work = work
        self._error: Optional[BaseException] = None
        self._is_stopped = threading.Event()
        self._moved_at = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="saving", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._work(self._goes_on)
        except BaseException as error:  # the chief raises the error when it asks for the result
            self._error = error

    def _goes_on(self) -> bool:
        self._moved_at = time.monotonic()
        return not self._is_stopped.is_set()

    @property
    def quiet_s(self) -> float:
        """Return the seconds since ``work`` last asked whether to continue."""
        return time.monotonic() - self._moved_at

    @property
    def is_over(self) -> bool:
        """Return whether the work has ended, with or without an error."""
        return not self._thread.is_alive()

    def ask_to_end(self) -> None:
        """Request the end of the work; ``work`` learns it when it next asks whether to continue."""
        self._is_stopped.set()

    def stop(self, timeout_s: Optional[float] = None) -> bool:
        """Ask the work to end, wait for its end, and return whether it has ended within ``timeout_s`` seconds.

        Without ``timeout_s`` the wait has no limit. If it hangs, the agent notices, as for a write by the chief itself.
        """
        self.ask_to_end()
        self._thread.join(timeout_s)
        return self.is_over

    def result(self) -> None:
        """Wait for the end of the work, and raise the error of the work if it failed."""
        self._thread.join()
        if self._error is not None:
            raise self._error


class PieceFiles(NamedTuple):
    """Pieces of a checkpoint: all paths, the paths of pieces with rows, and the thread that still writes, if any."""

    paths: List[str]
    of_rows: List[str]
    work: Optional[Background] = None

    def wait(self) -> None:
        """Wait until all pieces are written. Raises the error of a write that failed."""
        if self.work is not None:
            self.work.result()


class LastPieces:
    """The operations that write small variables and the remaining changed rows.

    Create the object on the device of the process that writes.
    """

    def __init__(self, small: Sequence[SmallVariables], rows: Sequence[SavedRows], fed: Fed):
        self._rows, self._path = list(rows), fed.path
        self._is_read = threading.Event()
        copies = [each.copies() for each in small]
        with tf.control_dependencies([tf.group(*copies, *(each.read_last for each in rows))]):
            self._report = tf.py_func(self._note_read, [], [])
        with tf.control_dependencies([self._report]):  # otherwise the writes would occupy all threads of this process
            self._variables = [
                each.write_copies(some, f"-copies-{number}") for number, (each, some) in enumerate(zip(small, copies))
            ]
            for each in rows:
                each.make_last_writes()

    def _note_read(self) -> None:
        self._is_read.set()

    def begin(self, session: Any, path: str, is_rehearsal: bool = False) -> PieceFiles:
        """Begin to write pieces, whose paths begin with ``path``; return the pieces once all their values are read.

        A rehearsal only prepares the operations: no row counts as changed.
        """
        last = [each.last(is_rehearsal) for each in self._rows]
        variables = [each.operation for each in self._variables]
        operations = (variables, [each.operations for each in last], self._report)
        feed = {key: value for each in last for key, value in each.feed.items()}
        of_all = [*([each.ending] for each in self._variables), *(each.endings for each in last)]
        endings = [ending for some in of_all for ending in some]
        of_rows = [ending for each in last for ending in each.endings[1:]]
        self._is_read.clear()
        work = Background(lambda goes_on: self._run(session, operations, {**feed, self._path: path}))
        self._is_read.wait()
        return PieceFiles([path + each for each in endings], [path + each for each in of_rows], work)

    def _run(self, session: Any, operations: Any, feed: Dict[Any, Any]) -> None:
        try:
            _, found, _ = session.run(operations, feed)
        finally:
            self._is_read.set()  # also after a server has failed
        for rows, ran in zip(self._rows, found):
            rows.note_last(ran)


class LiveSave:
    """A save while training continues. It begins with ``ahead`` in a thread, which can ask whether to continue.

    ``step`` is the step of the checkpoint, None until the chief has written the remaining pieces. ``work`` is the
    current background work.
    """

    def __init__(self, ahead: Callable[[Callable[[], bool]], None]):
        self.step: Optional[int] = None
        self.work = Background(ahead)

    def go_on(self, step: int, write: Callable[[], Any], publish: Callable[[Any], None]) -> bool:
        """Continue the save between two steps, if its thread has ended; return whether the checkpoint is complete.

        Once ``ahead`` has ended, the method calls ``write``, and then starts ``publish`` in a new thread.

        Args:
          step: the last step that the chief has taken.
          write: writes the remaining pieces of the checkpoint.
          publish: called with the result of ``write``; merges the pieces into a checkpoint.

        Raises:
          Exception: the error of ``ahead``, ``write`` or ``publish``.
        """
        if not self.work.is_over:
            return False
        self.work.result()
        if self.step is not None:
            return True
        written = write()
        self.step = step
        self.work = Background(lambda goes_on: publish(written))
        return False

    def give_up(self, timeout_s: float) -> bool:
        """End the save, whatever its state, and return whether it has ended within ``timeout_s`` seconds.

        If ``publish`` is already running, the method waits without a limit.
        """
        return self.work.stop(None if self.step is not None else timeout_s)

    def end(self) -> bool:
        """End the save now, and return whether the checkpoint is complete. Raises the error of the background work."""
        self.work.stop()
        self.work.result()
        return self.step is not None
