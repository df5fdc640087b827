"""The health of this host's GPUs: memory errors that ECC cannot correct, and clocks that the hardware reduces.

A driver that lacks one of the fields refuses the whole question, so fewer are asked then. A card without ECC, and one
whose driver does not know, answers ``[N/A]``.
"""

from typing import Dict, NamedTuple, Optional

from launch.agent.gpus import nvidia_smi

_ERRORS, _SLOWED = "ecc.errors.uncorrected.volatile.total", "clocks_throttle_reasons.hw_slowdown"
ASK = nvidia_smi.question("gpu", "uuid", _ERRORS, _SLOWED)
ASK_LESS = nvidia_smi.question("gpu", "uuid", _ERRORS)


class Health(NamedTuple):
    """The health of one GPU; ``memory_errors`` is None where none are counted."""

    memory_errors: Optional[int] = None
    slowed: bool = False


def health_of_all() -> Dict[str, Health]:
    """Return the health of each GPU by its UUID, as far as the driver reports it. Raises NoAnswer."""
    return read(nvidia_smi.ask(ASK)) or read(nvidia_smi.ask(ASK_LESS))


def read(answer: str) -> Dict[str, Health]:
    """Parse lines ``GPU-5f3c…, 2, Active`` of an answer; a line may end after the errors."""
    rows = [row for row in nvidia_smi.rows(answer) if len(row) >= 2]
    return {row[0]: Health(_count(row[1]), row[2:3] == ["Active"]) for row in rows}


def _count(text: str) -> Optional[int]:
    return int(text) if text.isdigit() else None
