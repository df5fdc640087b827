"""Mistakes in the keeper's decisions: the name, what is wrong, and the text with it."""

from typing import List

from tests.simulation.faults import Fault
from tests.simulation.mutants.mutant import Edit, Mutant
from tests.simulation.mutants.reverts import DETACHED, ELASTIC

_KEEPING = "launch/agent/service/keeping.py"

KEEPERS: List[Mutant] = [
    Mutant(
        "pulse asleep",
        "a keeper counts no suspension to the silence of a frozen agent",
        (Edit(_KEEPING, "counts = self._must_go and slept_s > SLEPT_S", "counts = False"),),
        known=(ELASTIC, (Fault(60.0, "stopped", "h2", 60.0), Fault(61.0, "sleep", "h2", 20.0))),
    ),
    Mutant(
        "pulse granted",
        "a keeper waits for its whole patience, also in a silence",
        (Edit(_KEEPING, "int(_PARTS * granted_s(patience_s, left) / patience_s)", "_PARTS"),),
        known=(ELASTIC, (Fault(60.0, "cut", "h2", 60.0), Fault(68.0, "stopped", "h2", 60.0))),
    ),
    Mutant(
        "last byte",
        "a keeper takes an agent for frozen that has closed its pulse",
        (Edit(_KEEPING, "self._is_closed = not beats or END in beats", "self._is_closed = not beats"),),
        known=(DETACHED, (Fault(55.0, "tidy", "h3", 30.0), Fault(60.0, "stop"))),
    ),
    Mutant(
        "records of another",
        "the keeper of an agent that finds the name taken ends the one that has it",
        (Edit(_KEEPING, "return code != TAKEN", "return True"),),
        known=(DETACHED, (Fault(60.0, "rival", "h3"),)),
    ),
    Mutant(
        "too many of a keeper",
        "a keeper begins agents again and again that end at once",
        (Edit(_KEEPING, "self.too_many = self._ends.too_many(now)", "self.too_many = 0"),),
        known=(DETACHED, (Fault(60.0, "refused", "h3", 120.0), Fault(61.0, "agent", "h3"))),
    ),
    Mutant(
        "next of the ended",
        "a keeper begins another agent after one that has ended in order",
        (Edit(_KEEPING, "code not in (OVER, AWAY) else None", "code != AWAY else None"),),
        known=(DETACHED, (Fault(60.0, "stop"),)),
    ),
]
