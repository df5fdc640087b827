"""The state of a run: its phase, its result and their cause.

Phases of a run, and the phases that may follow each:

    gathering   agents join; ends when all have joined and the launcher has sent go     training, closing
    training    tasks run; one that fails is restarted, with backoff, while it may      re-forming, closing
    re-forming  an elastic run has lost hosts, or takes some back: the processes of     training, closing
                the formation that trained end, then those of the next one start
    closing     the result is known (succeeded, failed or stopped): workers leave or    ended
                are stopped, then the ps; after a success the tasks first get time to
                leave by themselves; before it is stopped the chief saves
    ended       every task is gone

Only ``RunState`` changes the phase. Only the supervisor calls the methods that do; its other modules
get the phase as a value, and return the phase that should follow.
"""

from enum import Enum
from typing import FrozenSet, Mapping, Optional

from launch.agent.errors import AgentError


class Phase(Enum):
    """A phase of a run; the value is its name in messages."""

    GATHERING = "gathering"
    TRAINING = "training"
    REFORMING = "re-forming"
    CLOSING = "closing"
    ENDED = "ended"


TURNS: Mapping[Phase, FrozenSet[Phase]] = {
    Phase.GATHERING: frozenset({Phase.TRAINING, Phase.CLOSING}),
    Phase.TRAINING: frozenset({Phase.REFORMING, Phase.CLOSING}),
    Phase.REFORMING: frozenset({Phase.TRAINING, Phase.CLOSING}),
    Phase.CLOSING: frozenset({Phase.ENDED}),
    Phase.ENDED: frozenset(),
}


class IllegalTurn(AgentError):
    """A run was to enter a phase that cannot follow its phase: a mistake in the supervisor."""


class RunState:
    """The phase of one run, and what is known of its result.

    ``result`` and ``cause`` are None until the run closes; a run that succeeds has no cause. ``was_up`` is True
    once every task of a formation has been up.
    """

    def __init__(self) -> None:
        self._phase = Phase.GATHERING
        self._result: Optional[str] = None
        self._cause: Optional[str] = None
        self._was_up = False

    @property
    def phase(self) -> Phase:
        """Return the phase of the run now."""
        return self._phase

    @property
    def result(self) -> Optional[str]:
        """Return succeeded, failed or stopped; None before the run closes."""
        return self._result

    @property
    def cause(self) -> Optional[str]:
        """Return the reason for the result, in a line."""
        return self._cause

    @property
    def was_up(self) -> bool:
        """Return whether every task of a formation has been up."""
        return self._was_up

    @property
    def is_closing(self) -> bool:
        """Return whether the result is known, so that no task starts any more."""
        return self._phase in (Phase.CLOSING, Phase.ENDED)

    @property
    def label(self) -> str:
        """Return the run's state in ``status --json``."""
        if self._phase is Phase.ENDED and self._result is not None:
            return self._result
        return "running" if self._was_up else "starting"

    def turn(self, phase: Phase) -> None:
        """Enter a phase that needs no result; ``close`` enters closing.

        Raises:
          IllegalTurn: the phase cannot follow, or needs a result.
        """
        if phase is Phase.CLOSING:
            raise IllegalTurn("closing: expected a result, found none; call close")
        self._enter(phase)

    def close(self, result: str, cause: Optional[str]) -> None:
        """Enter closing, with the result of the run.

        Raises:
          IllegalTurn: the run has a result.
        """
        self._enter(Phase.CLOSING)
        self._result, self._cause = result, cause

    def correct_cause(self, cause: str) -> None:
        """Replace the cause: another was found to come first."""
        self._cause = cause

    def mark_up(self) -> None:
        """Record that every task of a formation has been up."""
        self._was_up = True

    def _enter(self, phase: Phase) -> None:
        allowed = TURNS[self._phase]
        if phase not in allowed:
            expected = " or ".join(sorted(each.value for each in allowed)) or "no other phase"
            raise IllegalTurn(f"{self._phase.value}: expected {expected} to follow, found {phase.value}")
        self._phase = phase
