"""The processes of simulated hosts, which start, hang, and leave early or late."""

from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional


@dataclass
class Process:
    """A process of a task. ``kill_at`` is on its agent's clock."""

    task: str
    attempt: int
    host: str
    pid: int
    began: float
    formation: Optional[str] = None
    lead: str = ""  # the incarnation that has ordered it
    step: int = 0
    checkpoint: Optional[int] = None
    save_asked: int = 0
    save_done: Optional[int] = None
    save_manner: str = ""
    held_until: float = 0.0
    kill_at: Optional[float] = None
    wants_term: bool = False
    ignores_term: bool = False
    is_frozen: bool = False
    dies_after: float = 0.05
    code: Optional[int] = None  # once it has ended
    outcome: Optional[Dict[str, Any]] = None
    is_dying: bool = False
    end: Callable[[int], None] = lambda code: None
