"""The limits of one task, by the keys of ``limits:`` in a hosts file."""

from dataclasses import asdict, dataclass
from typing import Any, Dict, Optional

GIB = 1 << 30


@dataclass(frozen=True)
class Limits:
    """The limits of a task; None for a limit that it does not have.

    Attributes:
      memory_gib: memory of all its processes together.
      processors: number of processors, which no other task with such a limit gets.
      numa_node: the node whose processors and memory it uses.
      nofile: number of files that each of its processes may have open.
      nice: its nice value; a higher value yields to others.
    """

    memory_gib: Optional[float] = None
    processors: Optional[int] = None
    numa_node: Optional[int] = None
    nofile: Optional[int] = None
    nice: Optional[int] = None

    @property
    def memory_bytes(self) -> Optional[int]:
        """Return the limit of memory in bytes."""
        return None if self.memory_gib is None else int(self.memory_gib * GIB)

    def given(self) -> Dict[str, Any]:
        """Return the limits that the task has, by their keys."""
        return {key: value for key, value in asdict(self).items() if value is not None}
