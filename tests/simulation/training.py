"""How simulated processes train together: they begin, take steps, save, and go back to what was saved."""

import json
from dataclasses import dataclass, field
from functools import partial
from typing import Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from cluster.protocol.save_request import HOLD_S
from launch.agent.wire.run_request import RunPlan
from tests.simulation.processes import Process
from tests.simulation.unwritten import Return

STEP_S, SAVED_EVERY, START_S = 0.4, 25, 3.0


class PassedOver(NamedTuple):
    """When a chief passed over which damaged checkpoint, and the steps up to there that the lead had not heard of."""

    at: float
    newest: int
    unknown: int


@dataclass
class Training:
    """How processes train together: all of a formation must live and reach each other.

    ``step`` is what the servers hold; ``saved`` is the newest checkpoint's. ``steps_lost`` is how far it went back in
    all, ``known_lost`` how far below what the lead knew, and ``falls`` how often.
    """

    plan: RunPlan
    now: Callable[[], float]
    reach: Callable[[str, str], bool]
    awake: Callable[[str], bool]
    processes: List[Process] = field(default_factory=list)
    step: float = 0.0
    saved: int = 0
    steps_lost: int = 0
    known_lost: int = 0
    stood_s: float = 0.0  # the longest time without a step, after the first and before the last
    _stands_s: float = 0.0
    falls: int = 0
    known: Callable[[], int] = lambda: 0  # the newest step that the lead has heard of
    counted: Callable[[], int] = lambda: 0  # the steps that the lead has counted as lost
    newest_return: Optional[Return] = None  # to a checkpoint, or the first start
    _known: int = 0
    _depth: int = 0  # below what the lead knew, since it knew of anything newer
    _holders: Tuple[int, ...] = ()
    on_disk: bool = False  # whether checkpoints are files
    copy: Callable[[int], None] = lambda step: None  # called before each is written, with the step of the one before
    earlier: List[Process] = field(default_factory=list)  # processes of earlier runs
    passed_over: int = 0  # steps between a checkpoint that lacked a file, and the one that training began with
    newest_passed: Optional[PassedOver] = None
    began_with: Optional[int] = None  # the checkpoint that the run began with

    def look(self, seconds: float) -> None:
        """Let so many seconds of training pass."""
        before = self.step
        for group in self._groups().values():
            if self._trains(group):
                self._advance(group, seconds)
        self._stands_s = self._stands_s + seconds if self.step == before else 0.0
        if 0 < self.step < (self.plan.steps or 1 << 30):
            self.stood_s = max(self.stood_s, self._stands_s)

    def living(self, task: str) -> List[Process]:
        """Processes of a task that have not ended."""
        return [each for each in [*self.earlier, *self.processes] if each.task == task and each.code is None]

    def begin_anew(self, plan: RunPlan) -> None:
        """Another run begins."""
        self.plan = plan
        self.earlier, self.processes = [*self.earlier, *self.processes], []
        self.step, self.saved, self.steps_lost, self.known_lost, self.falls, self.passed_over = 0.0, 0, 0, 0, 0, 0
        self.stood_s, self._stands_s, self._known, self._depth = 0.0, 0.0, 0, 0
        self._holders, self.began_with, self.newest_passed, self.newest_return = (), None, None, None

    def _groups(self) -> Dict[str, List[Process]]:
        found: Dict[str, List[Process]] = {}
        for each in self.processes:
            if each.code is None:
                found.setdefault(each.formation, []).append(each)
        return found

    def _trains(self, group: List[Process]) -> bool:
        formation, there = group[0].formation, {each.task for each in group}
        size = self._size(formation)
        if len(there) < size and len(there | self._done(formation)) < size:
            return False
        if any(each.is_still or self.now() - each.began < START_S for each in group):
            return False
        hosts = {each.host for each in group}
        return all(self.awake(host) for host in hosts) and all(
            self.reach(one, other) for one in hosts for other in hosts if one != other
        )

    def _done(self, formation: str) -> Set[str]:
        """Tasks that have taken the last step: the others can do without them."""
        return {each.task for each in self.processes if each.formation == formation and each.is_done}

    @staticmethod
    def _size(formation: str) -> int:
        return sum(map(len, json.loads(formation).values()))

    def _advance(self, group: List[Process], seconds: float) -> None:
        chief = next((each for each in group if each.task == self._chief), None)
        holders = tuple(sorted(each.pid for each in group if each.task.startswith("ps")))
        if holders != self._holders:  # begins with the checkpoint
            self._holders = holders
            self._go_back(chief)
            self._join(group)
        self._join([each for each in group if not each.joins])
        if chief is None or self.now() < chief.held_until:
            return
        chief.program.look_for_request()
        self.step = min(self.step + seconds / STEP_S, float(self.plan.steps or 1 << 30))
        if chief.save_asked > (chief.save_done or 0):
            self._save(chief)
            chief.save_done = chief.save_asked
            if chief.holds:
                chief.held_until = self.now() + HOLD_S
        elif int(self.step) >= self.saved + SAVED_EVERY:
            self._save(chief)
        chief.save_done = chief.save_done or 0
        for each in group:
            each.examples, each.step = each.examples + int(self.step) - each.step, int(self.step)
        chief.checkpoint = self.saved
        for each in group:
            each.program.report(1000 * STEP_S)
        if int(self.step) >= (self.plan.steps or 1 << 30):
            self._save(chief)
            for each in group:
                if not each.task.startswith("ps") and not each.is_done:
                    each.is_done = True
                    each.table.after(0.5 * (each.pid % 5), partial(self._succeed, each))

    def _join(self, group: List[Process]) -> None:
        for each in group:
            each.joins, each.joined, each.step = each.joins + 1, int(self.step), int(self.step)

    def _go_back(self, chief: Optional[Process]) -> None:
        """Let training begin with the checkpoint."""
        known = self.known()
        if self.on_disk and chief is not None:
            self.saved, newest = chief.program.restore()
            if newest > self.saved:
                self.newest_passed = PassedOver(self.now(), newest, max(0, newest - max(self.saved, known)))
                self.passed_over, known = self.passed_over + newest - self.saved, max(known, newest)
            self.began_with = self.saved if self.began_with is None else self.began_with
            self.step = max(self.step, float(newest))
        lost = int(self.step) - self.saved
        if known > self._known:
            self._known, self._depth = known, 0
        self.steps_lost += lost
        self.falls += lost > 0
        below = self._known - self.saved
        more = max(0, below - self._depth)
        self.known_lost, self._depth = self.known_lost + more, self._depth + more
        self.newest_return = Return(self.now(), self.saved, more, self.counted())
        self.step = float(self.saved)

    def _save(self, chief: Process) -> None:
        if self.on_disk:
            self.copy(self.saved)
        if not self.on_disk or chief.program.save(int(self.step)):
            self.saved = chief.checkpoint = int(self.step)

    def _succeed(self, process: Process) -> None:
        """Let a process end that has taken the last step, some later than others."""
        if process.is_still:
            return
        step = int(self.step)
        process.program.succeed({"succeeded": True, "step": step, "checkpoint_step": self.saved})

    @property
    def _chief(self) -> str:
        return next(task.name for task in self.plan.tasks if task.chief)
