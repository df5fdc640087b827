"""The progress and the stalls of training, from the steps that the workers report.

Training *stands* while no worker reports a step newer than all before. Workers report about once a second, so times are
accurate to a second. A worker that lost a ps reports its last step again before the worker joins again.

A *fall* is a return to a checkpoint, and its *top* is the step before it. Each worker reports the fall at a different
time, when others may already have passed the top. So a worker's next report of a fall means the fall that is counted
already, unless this worker has passed its top. On a slow network, a worker's report from before a fall may arrive after
another worker's report of it. Such a *late* report may have a step beyond the top, though no worker has passed it.

Between two reports that arrive, a worker may have gone back and passed the top. So workers also report at which step
they joined last. A program under ``command:`` does not know, and then only the steps count.
"""

from collections import deque
from typing import Any, Deque, Dict, Mapping, NamedTuple, Optional, Set, Tuple

LEAST_S = 1.5  # a shorter pause does not count: progress is reported about once a second
USUAL_PART = 0.1  # the weight of the newest pause in the mean of usual pauses
_AFTER_S = 0.001  # so that rounding puts no span before the incident that it belongs to
LATE_S = 10.0  # after a counted fall, the latest time at which a report from before it arrives
KEPT = 32  # newest pauses and falls: enough for all incidents that are open at a time


class StallSpan(NamedTuple):
    """The extent of one stall, or of one return to a checkpoint, which ended at the time ``until``.

    ``amount`` is in seconds for a stall, in steps for a return. ``begun`` is the step that training continued from;
    None where only the chief knows the step.
    """

    until: float
    amount: float
    begun: Optional[int] = None


class Fall(NamedTuple):
    """The newest counted return to a checkpoint: its number, and the step after it (``begun``)."""

    number: int = 0
    begun: int = 0
    at: float = 0.0  # when it was counted


class Stalls:
    """The newest global step, and the stalls and falls of training; ``newest`` is None before the first step."""

    def __init__(self) -> None:
        self.newest: Optional[int] = None
        self.went_back_to: Optional[int] = None  # by the last report; None where training did not go back
        self.advances = 0  # the number of times that a step was newer than any before
        self.seconds_lost = 0.0  # in all
        self.steps_lost = 0
        self._newest_at = 0.0
        self._usual_s: Optional[float] = None  # between two newer steps
        self._reports: Dict[str, Tuple[Optional[int], int]] = {}  # by task: its last step, and its examples
        self._joins: Dict[str, Optional[int]] = {}  # by task: the number of times that its process has joined
        self._fell = 0  # counted steps of falls since the newest step
        self._fall = Fall()
        self._tops = {0: 0}  # by the number of a fall, of the newest falls: the step before it
        self._regained = 0  # the newest step since the newest fall, by a task that has reported or passed that fall
        self._shared: Dict[str, int] = {}  # by task: the number of the fall that the task has reported or passed
        self._unharmed: Set[str] = set()  # tasks that have joined again since they last lost a step
        self._pauses: Deque[StallSpan] = deque(maxlen=KEPT)
        self._falls: Deque[StallSpan] = deque(maxlen=KEPT)

    def restore(
        self, newest: Optional[int], at: float, usual_s: Optional[float], steps: Mapping[str, Optional[int]]
    ) -> None:
        """Restore the state of an earlier supervisor.

        Args:
          newest: the newest step.
          at: the time at which a worker reported this step.
          usual_s: the seconds that one step takes.
          steps: each task's last step; None for a task that took no step under that supervisor. A return of
            such a task to a checkpoint counts from the newest step.
        """
        self.newest, self._newest_at, self._usual_s = newest, at, usual_s
        known = {task: newest if step is None else step for task, step in steps.items()}
        self._reports = {task: (step, 0) for task, step in known.items() if step is not None}

    def record(
        self, task: str, progress: Mapping[str, Any], now: float, chief: bool = False, is_old: bool = False
    ) -> bool:
        """Record a worker's progress; return whether the worker took a step since its last report.

        ``is_old`` is True for a report from before a pause that arrives during the pause: it has a step, and may show a
        return that others have reported, but training stands still.
        """
        self.went_back_to = None
        step, examples = progress.get("step"), progress.get("examples") or progress.get("reports") or 0
        before, counted = self._reports.get(task, (None, 0))
        if step is None or not examples:
            return False
        joined = self._joined(task, progress)
        last = before if before is not None and (step if joined is None else min(step, joined)) < before else None
        if is_old:  # from before the pause; where it shows a return, the next one is another return
            more = min(self._shared.get(task, 0) + 1, self._fall.number)
            self._shared[task] = self._passed(task, step) if last is None else more
        stands = examples == counted
        if stands and last is not None and not is_old:  # its next step shows what its return has lost
            self._reports[task] = (before, examples)
        else:  # the step is from after the join, so that join shows no return from this step
            self._reports[task], self._joins[task] = (step, examples), progress.get("joins")
        if is_old or stands or (last is None and self._is_late(task, step, now)):  # training stands
            self.newest = step if self.newest is None else max(step, self.newest)
            return False
        if last is not None:
            self._go_back(task, last, *_begun(step, progress, chief), now, chief)
        else:
            self._shared[task] = self._passed(task, step)
            if None not in (joined, before):
                self._unharmed.add(task)
        if not self.is_from_before(task):
            self._regained = max(step, self._regained)
        if self.newest is None or step > self.newest:
            self._advance(step, now)
        return True

    def _joined(self, task: str, progress: Mapping[str, Any]) -> Optional[int]:
        """Return the step at which a task has joined since its last report; None if it has not, or does not know."""
        is_known = progress.get("joins") == self._joins.get(task)
        return None if is_known else progress.get("joined_step")

    def _passed(self, task: str, step: int) -> int:
        """Return the number of the newest fall that a task has reported or passed, once it has taken ``step``.

        A task that has missed falls passes each of their tops in turn: its later steps are from after these falls.
        """
        newest, number = self._fall.number, self._shared.get(task, 0)
        if step > self._tops[newest]:
            return newest
        while number < newest and step > self._tops.get(number + 1, 0):
            number += 1
        return number

    def _is_late(self, task: str, step: int, now: float) -> bool:
        """Return whether a report is from before the newest fall: nobody else has passed that fall's top since."""
        is_beyond = self.is_from_before(task) and step > self._tops[self._fall.number] >= self._regained
        return is_beyond and now <= self._fall.at + LATE_S

    def recount(self, task: str, step: int) -> Optional[int]:
        """Count from ``step`` again if the task's last step is later, and return that last step; else return None.

        The program counts from the start again, as in every epoch. It has lost nothing.
        """
        last, examples = self._reports.get(task, (None, 0))
        if last is None or step >= last:
            return None
        self._reports[task] = (step, examples)
        self.newest = step - 1
        return last

    def is_from_before(self, task: str) -> bool:
        """Return whether a task's last report is from before the newest return to a checkpoint."""
        return self._shared.get(task, 0) < self._fall.number

    def returned_at(self, task: str, restored: int, now: float) -> float:
        """Return when others reported the return to ``restored`` that ``task`` reports ``now``; else ``now``."""
        is_reported = self.is_from_before(task) and self._fall.begun >= restored
        return self._fall.at - _AFTER_S if is_reported else now

    def pass_over(self, task: str, newest: int, restored: int, now: float) -> None:
        """Record that the chief, ``task``, continues from the step ``restored``, though it had reached ``newest``.

        A step that a worker of this run has reported counts as lost only when a worker reports an earlier step. Until
        the chief has reported one, the steps of others are from after this return, and all that it lost counts here.
        """
        known = (self.newest or 0) if task in self._reports else restored
        if newest > known:
            lost = newest - max(restored, known)
            is_below = restored < known  # then only a report shows that steps below are lost, too
            self._fell = self._fell + lost if is_below else newest - restored
            if is_below:  # a report of this fall, which may be the first one, counts no step above again
                self._tops[self._fall.number + (not self.is_from_before(task))] = newest
            if self.newest is None or newest > self.newest:
                self.newest, self._newest_at = newest, now
                self.advances += 1
            self.steps_lost += lost
            self._falls.append(StallSpan(now + _AFTER_S, lost, restored))

    @property
    def present(self) -> Optional[int]:
        """Return the newest step since the newest fall: the step to which the next fall is compared."""
        return self.newest if not self._fall.number or self.newest is None else min(self.newest, self._regained)

    def restart_examples(self, task: str) -> None:
        """Restart the count of a task's examples at 0, for the task's new process."""
        self._joins.pop(task, None)
        if task in self._reports:
            self._reports[task] = (self._reports[task][0], 0)

    def _go_back(self, task: str, last: int, begun: int, known: bool, now: float, chief: bool) -> None:
        """Record that training continues from the step ``begun``, which is earlier than a task's ``last``.

        ``known`` is False if training may have continued from a step before ``begun``.
        """
        missed = self._shared.get(task, 0) + 1
        is_same = missed <= self._fall.number
        lost = self._lost_more(task, missed, last, begun) if is_same else self._lost_anew(last, begun, now)
        if chief or lost:  # else another worker has reported this fall
            self.went_back_to = begun
        if lost or known:
            self.steps_lost += lost
            self._falls.append(StallSpan(now, lost, begun if known else None))
        self._shared[task] = self._fall.number
        self._unharmed.discard(task)

    def _lost_anew(self, last: int, begun: int, now: float) -> int:
        """Return the steps that a new fall has lost, beyond the steps already counted since the newest step.

        A worker knows its own last step. The newest step may come from after the fall.
        """
        below, self._regained = (self.newest or 0) - begun, begun
        if 0 < self._fell < below:  # late reports: these steps were lost in the fall before, and count now
            self._tops[self._fall.number] = max(self._tops[self._fall.number], self.newest or 0)
        self._fall = Fall(self._fall.number + 1, begun, now)
        self._tops[self._fall.number] = max(last, self._tops.get(self._fall.number, 0))
        self._tops.pop(self._fall.number - KEPT, None)
        lost = max(0, below - self._fell) if self._fell else max(0, last - begun)
        self._fell = max(self._fell, below)
        return lost

    def _lost_more(self, task: str, missed: int, last: int, begun: int) -> int:
        """Return the steps that counted falls have lost beyond their known losses.

        ``missed`` is the first fall that the worker has not reported. It may be an earlier one than the newest, if the
        worker's host was lost meanwhile: then its last step is from before that earlier fall. But a worker that has
        joined again and lost nothing may have passed the missed fall before others reported it. It loses no step twice.
        """
        kept = begun if task in self._unharmed else 0
        above, below = max(0, last - max(kept, self._tops.get(missed, last))), max(0, self._fall.begun - begun)
        if above:
            self._tops[missed] = last
        self._fall = self._fall._replace(begun=self._fall.begun - below)
        self._fell = max(self._fell, (self.newest or 0) - begun) if self._fell else 0
        return above + below

    def _advance(self, step: int, now: float) -> None:
        if self.newest is not None:
            pause_s = now - self._newest_at
            usual_s = pause_s if self._usual_s is None else self._usual_s
            if pause_s > LEAST_S + 2 * usual_s:
                self._pauses.append(StallSpan(now, pause_s - usual_s))
                self.seconds_lost += pause_s - usual_s
            else:
                self._usual_s = usual_s + USUAL_PART * (pause_s - usual_s)
        self.newest, self._newest_at, self._fell = step, now, 0
        self.advances += 1

    def resumption_since(self, since: float) -> Optional[int]:
        """Return the earliest step that training continued from at or after the time ``since``.

        The result is None where no return to a checkpoint is known.
        """
        return min((span.begun for span in self._falls if span.until >= since and span.begun is not None), default=None)

    def losses_since(self, since: float) -> Tuple[int, float]:
        """Return the steps and the seconds lost in returns and stalls that ended at or after the time ``since``."""
        steps = sum(span.amount for span in self._falls if span.until >= since)
        return int(steps), sum(span.amount for span in self._pauses if span.until >= since)


def _begun(step: int, progress: Mapping[str, Any], chief: bool) -> Tuple[int, bool]:
    """Return the step from which training continues, by the report of a task, and whether this step is known.

    It is the chief's first step, or the step of the checkpoint where a report has one. Else it is at most the step at
    which the task joined, or the step before ``step``.
    """
    joined, saved = progress.get("joined_step"), progress.get("checkpoint_step")
    if chief and joined is not None:
        return joined, True
    saves = chief and not progress.get("reports")  # a program keeps its checkpoints to itself
    saved = 0 if saved is None and (saves or step == 1) else saved
    if saved is not None and saved < step:  # else it was written after the return
        return saved, True
    return step - 1 if joined is None else min(step - 1, joined), False
