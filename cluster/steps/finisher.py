"""Applies steps beside the chief's own, so that a slow chief holds nobody up."""

import threading
from typing import Any, Optional


class Finisher(threading.Thread):
    """Runs ``finish`` once for every step that is left, then ends: nothing of it is blocked at the end.

    Used with backup workers only. Without them every step needs the chief's gradient anyway,
    and the chief's own step applies it.

    Attributes:
      error: what ended it before its time. It has closed the session then, so that the
        chief's own step, which waits for a token that nobody would send, ends too.
    """

    def __init__(self, session: Any, finish: Any, steps: int):
        super().__init__(name="finisher", daemon=True)
        self._session, self._finish, self._steps = session, finish, steps
        self.error: Optional[Exception] = None

    def run(self) -> None:
        """The thread's life."""
        try:
            for _ in range(self._steps):
                self._session.run(self._finish)
        except Exception as error:
            self.error = error
            self._session.close()
