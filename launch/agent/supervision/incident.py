"""One incident: something that went wrong, what followed from it, what was done, and what was lost."""

import signal
from dataclasses import dataclass, field, fields
from typing import Any, Dict, List, Mapping, Optional, Sequence

from launch.agent.supervision.kept import Kept

KINDS = {
    "exception": "a Python exception ended the task",
    "signal": "a signal ended the task",
    "out-of-memory": "the kernel, or an allocator, had no memory left for the task",
    "lost-connection": "the task could not reach another one any more",
    "exit": "the task left by itself, with an exit code and no more than that",
    "not-started": "a task's process, or a host's agent, could not be started",
    "frozen": "the task's process was there and made no progress",
    "agent": "a host's agent ended",
    "host": "nothing was heard of a host any more",
    "checkpoint": "a checkpoint could not be written or read",
    "non-finite": "a loss or a gradient was not a number",
}
OF_A_HOST = ("host", "agent")
MOST_LINES, LONGEST_LINE, MOST_STACK = 12, 300, 4000  # characters; they travel with every status
EARLIEST, NEWEST = 4, 8  # entries that are kept of a timeline


@dataclass
class Incident:
    """What is told of one incident. Times are seconds since the run began, on the lead's clock.

    ``number`` counts from 1. ``task`` and ``host`` are None where it is of none. ``step``: the newest
    global step when it began. ``again_s``: how long it took until the task took part in training
    again; ``lost_steps`` and ``lost_seconds``: how far the global step went back, and how long
    training stood until there was a step newer than any before. All three are known when it
    is over; until then ``open``.
    """

    number: int
    kind: str
    at_s: float
    task: Optional[str] = None
    role: Optional[str] = None
    index: Optional[int] = None
    host: Optional[str] = None
    attempt: Optional[int] = None
    step: Optional[int] = None
    cause: Optional[str] = None
    exit_code: Optional[int] = None
    log: Optional[str] = None
    lines: List[str] = field(default_factory=list)
    stack: Optional[str] = None
    open: bool = True
    again_s: Optional[float] = None
    lost_steps: Optional[int] = None
    lost_seconds: Optional[float] = None
    followed: "Kept[Dict[str, Any]]" = field(default_factory=lambda: Kept(EARLIEST, NEWEST))
    did: "Kept[Dict[str, Any]]" = field(default_factory=lambda: Kept(EARLIEST, NEWEST))
    tried: int = 1  # which of the attempts that ``restart.max`` counts
    mark: int = 0  # how often there had been a newer step when the task was started anew

    @property
    def title(self) -> str:
        """``worker:1@gpu02``, ``gpu02``, or the kind where it is of neither."""
        if self.task is None:
            return self.host or self.kind
        return f"{self.task}@{self.host}"

    def learn(
        self, exit_code: Optional[int], log: Optional[str], lines: Sequence[str] = (), stack: Optional[str] = None
    ) -> None:
        """Takes in what is known of it only later; what is known already stays."""
        self.exit_code = exit_code if self.exit_code is None else self.exit_code
        self.log = self.log or log
        self.lines = self.lines or [line[:LONGEST_LINE] for line in list(lines)[-MOST_LINES:]]
        self.stack = self.stack or (stack[-MOST_STACK:] if stack else None)

    def told(self) -> Dict[str, Any]:
        """As ``status --json`` and ``report.json`` have it."""
        return {
            "number": self.number, "kind": self.kind, "open": self.open, "at_s": round(self.at_s, 3),
            "role": self.role, "index": self.index, "host": self.host, "attempt": self.attempt, "step": self.step,
            "cause": self.cause, "exit_code": self.exit_code, "signal": signal_name(self.exit_code), "log": self.log,
            "lines": list(self.lines), "stack": self.stack,
            "followed": list(self.followed), "followed_count": self.followed.count, "did": list(self.did),
            "again_s": None if self.again_s is None else round(self.again_s, 3), "lost_steps": self.lost_steps,
            "lost_seconds": None if self.lost_seconds is None else round(self.lost_seconds, 3),
        }  # fmt: skip


def recalled(told: Mapping[str, Any]) -> Incident:
    """An incident out of what was told of it; it is over, since nobody is left who follows it."""
    own = {field.name for field in fields(Incident)} - {"followed", "did"}
    task = None if told["role"] is None else f"{told['role']}:{told['index']}"
    incident = Incident(**{**{key: value for key, value in told.items() if key in own}, "task": task, "open": False})
    for kept, key in ((incident.followed, "followed"), (incident.did, "did")):
        for entry in told[key]:
            kept.add(entry)
    incident.followed.count = told["followed_count"]
    return incident


def signal_name(exit_code: Optional[int]) -> Optional[str]:
    """``SIGKILL`` for -9; None for what is no signal."""
    if exit_code is None or exit_code >= 0:
        return None
    names = {int(each): each.name for each in signal.Signals}
    return names.get(-exit_code, f"signal {-exit_code}")
