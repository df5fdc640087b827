"""Report one worker's training: a first line that describes it, its progress, and its current activity.

The progress goes to the worker's agent in files, and to its log in lines. The first line has the settings, the planned
end, and the size of the variables. The activity goes into the worker's heartbeat and its flight record.
"""

import contextlib
import math
import time
from collections import Counter
from dataclasses import replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from cluster.errors import NonFiniteError
from cluster.model.device_pool import PoolMember
from cluster.protocol.flight_records import PsExchange
from cluster.protocol.loss_points import LossPoints
from cluster.protocol.outcome import Outcome, Progress, Reporter
from cluster.protocol.quantity import quantity
from cluster.scoring.measures import in_words
from cluster.steps.base_worker import BaseWorker
from cluster.steps.replica import Replica
from cluster.task import NO_LIMIT, Train
from cluster.training.callbacks import Step
from cluster.variables.placement import Placement, imbalance


def description(pool: Sequence[PoolMember], settings: Train, placement: Placement, slices: Optional[int]) -> str:
    """Return a line on a worker's training: its settings, its planned end, and the size of its variables.

    Args:
      slices: the number of slices of each large variable; None or 0 if variables stay whole.
    """
    held = placement.bytes_per_server()
    towers = sum(len(member.devices) for member in pool)
    cut = f", large ones in {quantity(slices, 'slice')} each" if slices else ""
    return (
        f"{settings.mode}, {settings.replication}, {_planned_end(settings)},"
        f" {quantity(pool[0].task.num_workers, 'worker')},"
        f" {quantity(towers, 'tower')} of batch {settings.tower_batch_size} here;"
        f" {sum(held):,} bytes of variables"
        f" on {len(held)} ps (the fullest holds {imbalance(held):.2f} times the mean){cut}"
    )


def _planned_end(settings: Train) -> str:
    epochs = [f"for {quantity(settings.epochs, 'epoch')}"] if settings.epochs else []
    steps = [f"to step {settings.steps}"] if settings.steps else []
    return ", at most ".join([*epochs, *steps])


def exchanges(replica: Replica) -> List[PsExchange]:
    """Return the pushes and bytes of a step for each ps; without buckets, each variable counts as one push."""
    servers = replica.placement.servers
    pushes = Counter([bucket.server for bucket in replica.buckets] or servers.values())
    return [PsExchange(pushes[ps], held) for ps, held in enumerate(replica.placement.bytes_per_server())]


_ENOUGH = 10  # steps; who joins for the last ones may have bad luck with all of them


class TrainingProgress:
    """The reports of training progress: a file and a line on stdout, at most once a second.

    Args:
      steps: the planned last step; None if only the data end the run.
      fields: returns the fields of ``Progress`` that belong to no single step.
      points: collects the points of the chief's loss curve; None for other workers.
    """

    def __init__(
        self,
        reporter: Reporter,
        steps: Optional[int],
        fields: Callable[[], Dict[str, Any]],
        points: Optional[LossPoints] = None,
    ):
        self._reporter, self._steps, self._fields, self._points = reporter, steps, fields, points
        self.taken = 0  # steps with examples, in all
        self._joins, self._joined = 0, 0
        self._examples = 0
        self._ignored = 0
        self._loss: Optional[float] = None  # of the last batch in which an example counts
        self._last: Optional[Progress] = None
        self._waits = False  # for records: the last report was of the same step as before it, without an example
        self._warned: Set[str] = set()

    def begin(self, step: int) -> None:
        """Print that this worker joined at ``step``, and begin to measure step times.

        The next call of ``note`` is for the first step after joining.
        """
        self._first = True
        self._joins, self._joined = self._joins + 1, step
        self._taken = 0
        self._since = time.monotonic()
        if self._points is not None:
            self._points.interrupt()
        print(f"joined at step {step}", flush=True)

    def note(self, step: Step, stepper: BaseWorker) -> Optional[float]:
        """Count ``step``, which ``stepper`` took, and report progress if a report is due.

        Returns:
          The mean step time since the last report, in milliseconds; None if the method reports nothing.
        """
        self._taken += 1
        self.taken += step.examples > 0
        self._examples += step.examples
        if step.examples:
            self._loss = step.loss
            self._ignored += not math.isfinite(step.loss)
            if self._points is not None:
                self._points.add(step.number, step.loss)
        if self._first or self._reporter.due() or step.number >= (self._steps or NO_LIMIT):
            elapsed_ms = (time.monotonic() - self._since) * 1000 / self._taken
            progress = Progress(
                step.number, _number_in_words(self._loss), elapsed_ms, self._examples, ignored_gradients=self._ignored,
                dropped_gradients=stepper.dropped, waited_s=stepper.waited_s, joins=self._joins,
                joined_step=self._joined, **self._fields(),
                **(self._points.fields() if self._points is not None else {}),
            )  # fmt: skip
            self._report(progress, self._loss)
            return elapsed_ms
        return None

    def _report(self, progress: Progress, loss: Optional[float]) -> None:
        self._reporter.progress(progress, force=True)
        now, before = ((each.step, each.examples) if each else None for each in (progress, self._last))
        has_waited, self._waits = self._waits, now == before
        self._last, self._first = progress, False
        self._taken, self._since = 0, time.monotonic()
        ignored = f", ignored {self._ignored} gradients that were not finite" if self._ignored else ""
        rate = f"{progress.step_time_ms:.1f} ms/step"
        goal = f"/{self._steps}" if self._steps else ""
        if not self._waits:
            words = "" if loss is None else f" loss {loss:.4g}"
            print(f"step {progress.step}{goal}{words} {rate}{ignored}", flush=True)
        elif not has_waited:
            print(f"step {progress.step}{goal}: waiting for records", flush=True)
        self._warn(progress.warnings)

    def _warn(self, warnings: Sequence[str]) -> None:
        """Print each warning once."""
        for text in warnings:
            if text not in self._warned:
                print(f"warning: {text}", flush=True)
        self._warned.update(warnings)

    def refuse_nothing_trained(self, task: str) -> None:
        """Refuse a run in which no step of this worker has trained, out of at least ``_ENOUGH`` or of all steps.

        So a run that has trained nothing does not succeed.

        Raises:
          NonFiniteError: every gradient of this worker was ignored.
        """
        if self._ignored == self.taken >= min(_ENOUGH, self._steps or _ENOUGH) > 0:
            raise NonFiniteError(
                f"{task}: expected finite gradients, found none in {self.taken} steps; check the data and the learning"
                " rate; with train.on_nan: stop, the error names the first loss or gradient that is not finite"
            )

    def report_now(self, step: int) -> None:
        """Report the newest progress again, with ``step`` and the current values of the fields."""
        self._last = replace(self._last or Progress(step), step=step, **self._fields())
        self._warn(self._last.warnings)
        self._reporter.progress(self._last, force=True)

    def end(self, outcome: Outcome) -> Outcome:
        """Write the last progress and ``outcome``; return ``outcome``."""
        last = self._last or Progress(int(outcome.step or 0))
        checkpoint_step = outcome.checkpoint_step
        self._reporter.progress(replace(last, step=int(outcome.step or 0), checkpoint_step=checkpoint_step), force=True)
        self._reporter.outcome(outcome)
        metrics = in_words(outcome.metrics)
        print(f"finished at step {outcome.step}{': ' + metrics if metrics else ''}", flush=True)
        return outcome


def _number_in_words(loss: Optional[float]) -> Optional[float]:
    return loss if loss is not None and math.isfinite(loss) else None  # JSON has no NaN


class Activity:
    """The current activity of a worker, for its heartbeat and its flight record."""

    def __init__(self, reporter: Reporter):
        self._pulse, self._record = reporter.heartbeat, reporter.recorder
        self._known: Set[Tuple[bool, ...]] = set()
        self._all_waited_s = 0.0  # in steps of this graph
        self._waited_s = 0.0  # in the last step, until the phase behind it has begun

    def note(self, doing: str) -> None:
        """Report ``doing``: in a few words, what the worker does during its start."""
        self._pulse.note(doing)

    def begin_graph(self) -> None:
        """Report that the worker begins to build a graph; the waits of its steps are counted from 0."""
        self._all_waited_s = 0.0
        self.note("builds its graph")

    def describe(self, replica: Replica) -> None:
        """Write the pushes and bytes of a step for each ps into the flight record."""
        self._record.describe(exchanges(replica))

    def begin_session(self) -> None:
        """Report that the worker begins to join, for the first time or again."""
        self._pulse.restart()
        self.note("waits for the parameter servers")

    def lose_session(self, step: int) -> None:
        """Record that an error has ended the current step or phase, after the global step ``step``."""
        self._record.end(step, is_whole=False)
        self._record.begin("starting")

    def begin_steps(self, owes: Callable[[], bool]) -> None:
        """Record that steps begin; ``owes`` returns whether the current step waits for this worker."""
        self._pulse.ask = owes
        self._known = set()

    def begin_step(self, fetches: Tuple[bool, ...]) -> None:
        """Record that a step begins. ``fetches``: for each callback, whether it fetches values in this step.

        TensorFlow places the graph again for each new set of fetches. So a step with a new set takes as long as a first
        step, and is recorded as one.
        """
        self._is_first, self._fetches = fetches not in self._known, fetches
        self._record.begin("first step" if self._is_first else "step")
        if self._is_first:
            self._known.add(fetches)
            self._pulse.begin_phase("first step")

    def rest(self) -> None:
        """Record that no step was taken: the next with these fetches is a first step still."""
        if self._is_first:
            self._known.discard(self._fetches)

    def end_step(self, step: int, stepper: BaseWorker) -> None:
        """Record that ``stepper`` has ended a step, and the seconds that the step waited for other workers."""
        self._waited_s = (stepper.waited_s or 0.0) - self._all_waited_s
        self._all_waited_s += self._waited_s
        self._record.end(step, None if stepper.waited_s is None else self._waited_s, stepper.longest_wait)

    def await_step(self) -> None:
        """Count the time from now on as part of the next step."""
        self._begin_phase("step")

    def begin(self, phase: str) -> None:
        """Record that ``phase``, which is not a step, begins."""
        self._begin_phase(phase)
        self._record.begin(phase)

    def end(self, step: int) -> None:
        """Record the end of the current phase, after the global step ``step``."""
        self._record.end(step)

    @contextlib.contextmanager
    def pause(self, phase: str, step: int) -> Iterator[None]:
        """Inside this context, report ``phase`` between two steps; record it at the end if it was long enough."""
        self.begin(phase)
        yield
        self._record.end_pause(step)

    def _begin_phase(self, phase: str) -> None:
        self._pulse.begin_phase(phase, self._waited_s)
        self._waited_s = 0.0
