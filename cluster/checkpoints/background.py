"""Work of a chief that goes on in a thread of its own while the chief takes steps."""

import threading
import time
from typing import Callable, Optional


class Background:
    """Begin ``work``, which asks the function that it is given whether to go on."""

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
        except BaseException as error:  # the chief raises it, where it asks for the result
            self._error = error

    def _goes_on(self) -> bool:
        self._moved_at = time.monotonic()
        return not self._is_stopped.is_set()

    @property
    def quiet_s(self) -> float:
        """Return for how long the work has not asked whether to go on."""
        return time.monotonic() - self._moved_at

    @property
    def is_over(self) -> bool:
        """Return whether the work has ended, well or not."""
        return not self._thread.is_alive()

    def ask_to_end(self) -> None:
        """Ask the work to end."""
        self._is_stopped.set()

    def stop(self, timeout_s: Optional[float] = None) -> bool:
        """Ask the work to end, wait for that, and return whether it has ended in time.

        A chief waits without limit, as for a piece that it writes itself: its agent notices when that hangs.
        """
        self.ask_to_end()
        self._thread.join(timeout_s)
        return self.is_over

    def result(self) -> None:
        """Raise what the work has raised, once it is over."""
        self._thread.join()
        if self._error is not None:
            raise self._error
