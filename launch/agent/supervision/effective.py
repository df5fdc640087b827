"""Effective training time: the time spent on steps that count, as a share of all time since the run began.

Every second belongs to one part:

start         the time until a worker reports the first step
kept          the time between two reports of newer steps, if these steps still count
rolled back   the same, if these steps were lost later because training returned to a checkpoint; when such steps are
              taken again, the new time is kept
saving        the time in which the chief saved or measured between two steps while the other workers waited for it
standing      all other time: no step for longer than usual, for any reason; also the time after the last step

Workers report about once a second, so a shorter pause is not noticed, unless the chief reports a save.
"""

from typing import Any, List, Mapping, NamedTuple, Optional

from launch.agent.supervision.stall import LEAST_S, USUAL_PART
from launch.status.run import EffectiveTime

MOST_SAMPLES = 512
DIGITS = 3


class EffectiveSample(NamedTuple):
    """The time ``kept_s``, in seconds, that was spent on steps that count until training reached ``step``."""

    step: int
    kept_s: float


class Effective:
    """The time of a run, divided into kept, rolled-back and other parts, in seconds on the supervisor's clock."""

    def __init__(self) -> None:
        self._began_at: Optional[float] = None
        self._at = 0.0  # the time of the newest report
        self._start_s = self._kept_s = self._rolled_back_s = self._saving_s = self._standing_s = 0.0
        self._samples: List[EffectiveSample] = []  # up to the current step; empty before the first
        self._report_s: Optional[float] = None  # usual seconds between two reports of newer steps
        self._step_s = 0.0  # usual seconds of a step
        self._reported_saving_s = 0.0  # by the chief's process
        self._stood_s = self._gained_s = 0.0  # standing and kept since the chief's last report

    def begin(self, now: float) -> None:
        """Begin to count the time of the run, unless the count has begun before."""
        if self._began_at is None:
            self._began_at = self._at = now

    def restore(self, earlier: Optional[EffectiveTime], step: Optional[int], rate: float, at: float) -> None:
        """Continue the count with the times in the status of an earlier supervisor.

        Args:
          step: the newest step in that status.
          rate: the steps per second in that status; 0 where the rate was not known.
          at: the time of that status.
        """
        if earlier is None or step is None:
            return
        self._began_at, self._at = at - earlier.of_seconds, at
        self._start_s, self._kept_s = earlier.start_s, earlier.seconds
        self._rolled_back_s, self._saving_s = earlier.rolled_back_s, earlier.saving_s
        self._standing_s = earlier.standing_s
        self._samples, self._step_s = [EffectiveSample(step, self._kept_s)], 1 / rate if rate else 0.0
        self._report_s = self._step_s

    def record(self, step: int, progress: Mapping[str, Any], chief: bool, now: float) -> None:
        """Record ``progress``, a worker's report that it has taken ``step``; ``chief`` is True if the chief reports."""
        if not self._samples:
            self._start_s, self._at = now - (self._began_at or 0.0), now
            self._samples.append(EffectiveSample(step, self._kept_s))
        elif step > self._samples[-1].step:
            self._advance(step, now)
        if chief:
            self._save(progress, waits=progress.get("waited_s") is not None)

    def go_back(self, step: int) -> None:
        """Record that training continues from an earlier ``step``: the time of later steps counts as rolled back."""
        if not self._samples or step >= self._samples[-1].step:
            return
        kept_s = self._kept_at(step)
        self._rolled_back_s += self._kept_s - kept_s
        self._kept_s = kept_s
        self._samples = [*(sample for sample in self._samples if sample.step < step), EffectiveSample(step, kept_s)]

    def recount(self, step: int) -> None:
        """Continue from ``step``, because a program counts its steps from the start again; no time counts as lost."""
        if self._samples:
            self._samples = [EffectiveSample(step, self._kept_s)]

    def _advance(self, step: int, now: float) -> None:
        passed_s, steps = now - self._at, step - self._samples[-1].step
        is_usual = self._report_s is None or passed_s <= LEAST_S + 2 * self._report_s
        kept_s = passed_s if is_usual else min(passed_s, self._step_s * steps)
        if is_usual:
            self._report_s = _mean(self._report_s, passed_s)
            self._step_s = _mean(self._step_s or None, passed_s / steps)
        self._kept_s += kept_s
        self._gained_s += kept_s
        self._stood_s += passed_s - kept_s
        self._standing_s += passed_s - kept_s
        self._at = now
        self._samples.append(EffectiveSample(step, self._kept_s))
        if len(self._samples) > MOST_SAMPLES:
            self._samples = [*self._samples[:-1:2], self._samples[-1]]

    def _save(self, progress: Mapping[str, Any], waits: bool) -> None:
        """Move the time for which the chief has saved since its last report out of the other parts."""
        reported_s = progress.get("saving_s") or 0.0
        saved_s = reported_s - self._reported_saving_s if reported_s >= self._reported_saving_s else reported_s
        from_standing_s = min(saved_s, self._stood_s)
        from_kept_s = min(saved_s - from_standing_s, self._gained_s, self._kept_s) if waits else 0.0
        self._stood_s, self._gained_s, self._reported_saving_s = 0.0, 0.0, reported_s
        self._standing_s -= from_standing_s
        self._kept_s -= from_kept_s
        self._saving_s += from_standing_s + from_kept_s
        for place in range(len(self._samples) - 1, -1, -1):  # the samples since the chief's last report
            if self._samples[place].kept_s <= self._kept_s:
                break
            self._samples[place] = EffectiveSample(self._samples[place].step, self._kept_s)

    def _kept_at(self, step: int) -> float:
        """Return the seconds that were kept at an earlier step, in proportion between two reports."""
        before = [sample for sample in self._samples if sample.step <= step]
        after = [sample for sample in self._samples if sample.step > step]
        if not before:
            return max(0.0, after[0].kept_s - self._step_s * (after[0].step - step))
        low, high = before[-1], after[0]
        return low.kept_s + (high.kept_s - low.kept_s) * (step - low.step) / (high.step - low.step)

    def status(self, now: float) -> Optional[EffectiveTime]:
        """Return how the run's time until ``now`` divides into parts; None before the run begins.

        The time since the newest report counts only once it is longer than usual.
        """
        if self._began_at is None:
            return None
        passed_s = max(0.0, now - self._at)
        is_usual = bool(self._samples) and passed_s <= LEAST_S + 2 * (self._report_s or 0.0)
        open_s = 0.0 if is_usual else float(int(passed_s))
        start_s, standing_s = (self._start_s, self._standing_s + open_s) if self._samples else (open_s, 0.0)
        parts = [self._kept_s, start_s, standing_s, self._rolled_back_s, self._saving_s]
        seconds, start_s, standing_s, rolled_back_s, saving_s = (round(part, DIGITS) for part in parts)
        of_seconds = round(sum(parts), DIGITS)
        share = round(self._kept_s / of_seconds, DIGITS) if of_seconds else None
        return EffectiveTime(
            share=share,
            seconds=seconds,
            of_seconds=of_seconds,
            start_s=start_s,
            standing_s=standing_s,
            rolled_back_s=rolled_back_s,
            saving_s=saving_s,
        )


def _mean(usual: Optional[float], newest: float) -> float:
    return newest if usual is None else usual + USUAL_PART * (newest - usual)
