"""The processes of a simulated host: what signals do to them, and when they are gone."""

import signal
from dataclasses import dataclass, field
from typing import Any, Dict, Optional

from launch.agent.linux.processes import Process as Row


@dataclass(eq=False)
class Process:
    """A process, of a task or of an earlier one of its processes, its leader.

    ``waits``: it is prepared for a coming attempt. ``is_stuck``: it hangs in the kernel, where no signal reaches it.
    ``is_dying``: it does nothing more, and is gone soon. ``code`` is there once it is gone, negative for a signal.
    """

    table: Any  # its host's
    pid: int
    parent: int
    leader: int
    session: int
    start: int
    env: Dict[str, str]
    task: str
    attempt: int
    host: str
    began: float
    formation: str = ""
    lead: str = ""  # the incarnation that has ordered it
    program: Any = None  # of a leader
    waits: bool = False
    turn_at: float = 0.0  # when it began to train
    step: int = 0
    examples: int = 0  # one for each step that it has taken, also for those that it has taken again
    checkpoint: Optional[int] = None
    save_asked: int = 0
    save_done: Optional[int] = None
    joins: int = 0
    joined: Optional[int] = None
    holds: bool = False  # whether it stands still once it has saved
    held_until: float = 0.0
    ignores_term: bool = False
    is_done: bool = False  # it has taken the last step
    is_frozen: bool = False
    is_stuck: bool = False
    is_dying: bool = False
    dies_after: float = 0.05
    code: Optional[int] = None
    _owed: Optional[int] = field(default=None, repr=False)

    @property
    def row(self) -> Row:
        """Its line of the process table."""
        state = "Z" if self.code is not None else "D" if self.is_stuck else "S"
        return Row(self.pid, self.parent, self.session, self.session, state, self.start)

    @property
    def run(self) -> Optional[str]:
        """Return the run of its task; None for a process that nobody has ordered."""
        return self.env.get("LAUNCH_RUN")

    @property
    def is_still(self) -> bool:
        """Whether it takes no step."""
        return self.is_frozen or self.is_stuck or self.is_dying

    def take(self, number: int) -> None:
        """Get a signal."""
        if number == signal.SIGKILL or (number == signal.SIGTERM and not self.ignores_term):
            self.end(-number)

    def end(self, code: int) -> None:
        """End, by a signal or by itself; it is gone some time later."""
        if not self.is_dying:
            self.is_dying = True
            self.table.after(self.dies_after, lambda: self.leave(code))

    def leave(self, code: int) -> None:
        """Be gone, as soon as the kernel lets it."""
        self.is_dying = True
        if self.is_stuck or self.table.is_asleep:
            self._owed = code
        elif self.code is None:
            self.code = code
            self.table.ended(self)

    def hang(self) -> None:
        """Hang in the kernel."""
        self.is_stuck = self.code is None

    def free(self) -> None:
        """Go on, where it hung; what was to end it does."""
        self.is_stuck = False
        self.settle()

    def settle(self) -> None:
        """Leave, where that had to wait."""
        owed, self._owed = self._owed, None
        if owed is not None:
            self.leave(owed)
