"""A host that was lost, and the time from which the run may take it back."""

import math
from dataclasses import dataclass
from typing import Optional

from launch.agent.supervision.incident import Incident

SETTLE_S = 3.0
PATIENCE_S = 30.0
LONGEST_PATIENCE_S = 900.0


@dataclass
class Absence:
    """A host that was lost, and the number of its losses.

    ``ready_at`` is the time from which the run may take the host back; infinite while the host is silent.
    """

    losses: int = 0
    ready_at: float = math.inf
    incident: Optional[Incident] = None  # of its newest loss

    def begin(self, incident: Incident) -> None:
        """Record a loss of the host, which is silent from now on."""
        self.losses, self.ready_at, self.incident = self.losses + 1, math.inf, incident

    def end(self, now: float) -> None:
        """Record the return of the host."""
        again = self.losses - 1
        patience_s = min(LONGEST_PATIENCE_S, PATIENCE_S * 2 ** (again - 1)) if again else 0.0
        self.ready_at = min(self.ready_at, now + max(SETTLE_S, patience_s))
