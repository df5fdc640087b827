"""Applies steps beside the chief's own, so that a slow chief holds nobody up."""

import threading
from typing import Any, Optional


class Finisher(threading.Thread):
    """Run ``finish`` once for every step that is left, then end.

    So no part of the thread is blocked at the end. A run uses the thread with backup workers only. Without backup
    workers every step needs the chief's gradient anyway, and the chief's own step applies it.

    Attributes:
      error: the error that ended the thread early. The thread has closed the session then, so that the chief's own
        step, which waits for a token that no task would send, ends too.
    """

    def __init__(self, session: Any, finish: Any, steps: int):
        super().__init__(name="finisher", daemon=True)
        self._session, self._finish, self._steps = session, finish, steps
        self.error: Optional[Exception] = None

    def run(self) -> None:
        """Run ``finish`` once for each step; on an error, keep it and close the session."""
        try:
            for _ in range(self._steps):
                self._session.run(self._finish)
        except Exception as error:
            self.error = error
            self._session.close()
