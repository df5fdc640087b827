"""One checkpoint of a run that trains on: most of it is written while the chief takes steps.

ahead    a thread writes rows of embedding tables, again and again those that have changed meanwhile
write    between two steps, the chief itself writes what has changed since, and all else
publish  a thread makes a checkpoint of these pieces, and removes old ones
"""

from typing import Any, Callable, Optional

from cluster.checkpoints.background import Background


class LiveSave:
    """Begin the save with ``ahead``, which asks the function that it is given whether to go on.

    ``step`` is that of the checkpoint, None before it is written.
    """

    def __init__(self, ahead: Callable[[Callable[[], bool]], None]):
        self.step: Optional[int] = None
        self._work = Background(ahead)

    def ask_to_end(self) -> None:
        """Ask the save to end soon."""
        self._work.ask_to_end()

    def go_on(self, step: int, write: Callable[[], Any], publish: Callable[[Any], None]) -> bool:
        """Between two steps, take what can be taken without a wait; return whether the checkpoint is there.

        Args:
          step: the last that was taken.
          publish: gets what ``write`` returns.

        Raises:
          Exception: what any of the three has raised.
        """
        if not self._work.is_over:
            return False
        self._work.result()
        if self.step is not None:
            return True
        written = write()
        self.step = step
        self._work = Background(lambda goes_on: publish(written))
        return False

    def give_up(self, timeout_s: float) -> bool:
        """End the save, whatever it has come to, and return whether that has ended in time.

        A checkpoint that is being published has all the time that its disk takes.
        """
        return self._work.stop(None if self.step is not None else timeout_s)

    @property
    def quiet_s(self) -> float:
        """Return for how long no sign has come that the save goes on."""
        return self._work.quiet_s

    def end(self) -> bool:
        """End the save now, and return whether the checkpoint is there. Raises what the work has raised."""
        self._work.stop()
        self._work.result()
        return self.step is not None
