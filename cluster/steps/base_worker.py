"""The answers that most workers' steps have for a trainer: they read batches that need no care."""

import contextlib
from typing import Any, ContextManager


class BaseWorker:
    """Take the steps of one worker, in a session.

    ``has_ended``: whether all data have been trained, so that no step is left.
    """

    has_ended = False

    def begin_reading(self, session: Any) -> None:
        """Let the batches come from where the servers are: before a gradient is given, and once more when joined."""

    def stop_reading(self) -> None:
        """End the reading for a session that is given up."""

    def paused(self, session: Any) -> ContextManager[Any]:
        """Return a context in which the chief saves; inside, no gradient is applied where a place goes with it."""
        return contextlib.nullcontext()
