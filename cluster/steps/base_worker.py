"""The answers that most workers' steps have for a trainer: they read batches that need no care."""

import contextlib
from typing import Any, ContextManager, Iterator, Optional

from cluster.protocol.flight_records import Wait


class BaseWorker:
    """Take the steps of one worker, in a session.

    ``has_ended``: whether all data have been trained, so that no step is left. ``longest_wait``: the ps that the last
    step waited longest for; None for steps that do not wait for each ps by itself.
    """

    has_ended = False
    longest_wait: Optional[Wait] = None

    def begin_reading(self, session: Any) -> None:
        """Let the batches come from where the servers are: before a gradient is given, and once more when joined."""

    def stop_reading(self) -> None:
        """End the reading for a session that is given up."""

    def paused(self, session: Any) -> ContextManager[Any]:
        """Return a context in which the chief saves; inside, no gradient is applied where a place goes with it."""
        return contextlib.nullcontext()

    @contextlib.contextmanager
    def held(self, session: Any, step: int) -> Iterator[int]:
        """Return a context in which no worker takes a step; inside, the global step is what it gives.

        The chief enters it between two steps of its own, after ``step``. Here no step is taken without the chief.
        """
        yield step
