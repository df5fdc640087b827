"""Report one worker's training: a first line on what it is about to do, its progress, and its present activity.

The progress goes to its agent in files, and to its log in lines. The first line describes the settings, and what each
step exchanges with each ps. The activity goes into the worker's pulse and its flight record.
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
from cluster.protocol.outcome import Outcome, Progress, Reporter
from cluster.protocol.quantity import quantity
from cluster.scoring.measures import in_words
from cluster.steps.base_worker import BaseWorker
from cluster.steps.replica import Replica
from cluster.task import NO_LIMIT, Train
from cluster.training.callbacks import Step
from cluster.variables.placement import Placement, imbalance


def description(pool: Sequence[PoolMember], settings: Train, placement: Placement, slices: Optional[int]) -> str:
    """Return the settings, the end, and the size of a worker's training.

    Args:
      slices: of each large variable; None or 0 for whole ones.
    """
    held = placement.bytes_per_server()
    towers = sum(len(member.devices) for member in pool)
    cut = f", in {quantity(slices, 'slice')} each" if slices else ""
    return (
        f"{settings.mode}, {settings.replication}, {_planned_end(settings)},"
        f" {quantity(pool[0].task.num_workers, 'worker')},"
        f" {quantity(towers, 'tower')} of batch {settings.tower_batch_size} here;"
        f" {sum(held):,} bytes of variables"
        f" on {len(held)} ps (the fullest holds {imbalance(held):.2f} of the mean){cut}"
    )


def _planned_end(settings: Train) -> str:
    epochs = [f"for {quantity(settings.epochs, 'epoch')}"] if settings.epochs else []
    steps = [f"to step {settings.steps}"] if settings.steps else []
    return ", at most ".join([*epochs, *steps])


def exchanges(replica: Replica) -> List[PsExchange]:
    """Return what a step pushes to each ps and pulls from it: buckets, or without them one variable by the other."""
    servers = replica.placement.servers
    pushes = Counter([bucket.server for bucket in replica.buckets] or servers.values())
    return [PsExchange(pushes[ps], held) for ps, held in enumerate(replica.placement.bytes_per_server())]


_ENOUGH = 10  # steps; who joins for the last ones may have bad luck with all of them


class TrainingProgress:
    """Report training progress: a file and a line on stdout, at most once a second.

    Args:
      fields: returns those fields of ``Progress`` that are of no single step.
    """

    def __init__(self, reporter: Reporter, steps: Optional[int], fields: Callable[[], Dict[str, Any]]):
        self._reporter, self._steps, self._fields = reporter, steps, fields
        self.taken = 0  # steps in all
        self._examples = 0
        self._ignored = 0
        self._loss = math.nan  # of the last batch in which an example counts
        self._last: Optional[Progress] = None
        self._warned: Set[str] = set()

    def begin(self, step: int) -> None:
        """Print that this worker joined at ``step``, and begin to measure step times.

        The next step is the first after joining.
        """
        self._first = True
        self._taken = 0
        self._since = time.monotonic()
        print(f"joined at step {step}", flush=True)

    def note(self, step: Step, stepper: BaseWorker) -> Optional[float]:
        """Note one step, and report progress if a report is due.

        Returns:
          The step time in milliseconds if it was reported now, else None.
        """
        self._taken += 1
        self.taken += 1
        self._examples += step.examples
        if step.examples:
            self._loss = step.loss
            self._ignored += not math.isfinite(step.loss)
        if self._first or self._reporter.due() or step.number >= (self._steps or NO_LIMIT):
            elapsed_ms = (time.monotonic() - self._since) * 1000 / self._taken
            progress = Progress(
                step.number, _number_in_words(self._loss), elapsed_ms, self._examples, ignored_gradients=self._ignored,
                dropped_gradients=stepper.dropped, waited_s=stepper.waited_s, **self._fields(),
            )  # fmt: skip
            self._report(progress, self._loss)
            return elapsed_ms
        return None

    def _report(self, progress: Progress, loss: float) -> None:
        self._reporter.progress(progress, force=True)
        self._last, self._first = progress, False
        self._taken, self._since = 0, time.monotonic()
        ignored = f", {self._ignored} gradients that were not finite ignored" if self._ignored else ""
        rate = f"{progress.step_time_ms:.1f} ms/step"
        goal = f"/{self._steps}" if self._steps else ""
        print(f"step {progress.step}{goal} loss {loss:.4g} {rate}{ignored}", flush=True)
        self._warn(progress.warnings)

    def _warn(self, warnings: Sequence[str]) -> None:
        """Print each warning once."""
        for text in warnings:
            if text not in self._warned:
                print(f"warning: {text}", flush=True)
        self._warned.update(warnings)

    def refuse_nothing_trained(self, task: str) -> None:
        """Refuse a run in which this worker has trained nothing in at least ``_ENOUGH`` steps, or all of the run.

        A run that looks as if it had trained must have done so.

        Raises:
          NonFiniteError: every gradient of this worker was ignored.
        """
        if self._ignored == self.taken >= min(_ENOUGH, self._steps or _ENOUGH) > 0:
            raise NonFiniteError(
                f"{task}: expected gradients that are finite numbers, found none in {self.taken} steps; look at the"
                " data and the learning rate; train.on_nan: stop names the first loss or gradient"
            )

    def report_now(self, step: int) -> None:
        """Report the newest progress again, with ``step`` and the fields as they are now."""
        self._last = replace(self._last or Progress(step), step=step, **self._fields())
        self._warn(self._last.warnings)
        self._reporter.progress(self._last, force=True)

    def end(self, outcome: Outcome) -> Outcome:
        """Write the last progress and the outcome."""
        last = self._last or Progress(int(outcome.step or 0))
        checkpoint_step = outcome.checkpoint_step
        self._reporter.progress(replace(last, step=int(outcome.step or 0), checkpoint_step=checkpoint_step), force=True)
        self._reporter.outcome(outcome)
        metrics = in_words(outcome.metrics)
        print(f"finished at step {outcome.step}{': ' + metrics if metrics else ''}", flush=True)
        return outcome


def _number_in_words(loss: float) -> Optional[float]:
    return loss if math.isfinite(loss) else None  # JSON has no NaN


class Activity:
    """The present activity of a worker, in its pulse and in its flight record."""

    def __init__(self, reporter: Reporter):
        self._pulse, self._record = reporter.heartbeat, reporter.recorder
        self._known: Set[Tuple[bool, ...]] = set()
        self._all_waited_s = 0.0  # in steps of this graph
        self._waited_s = 0.0  # in the last step, until the phase behind it has begun

    def note(self, doing: str) -> None:
        """Note the current part of a start, in a few words."""
        self._pulse.note(doing)

    def begin_graph(self) -> None:
        """Begin to build a graph, whose steps count their waits from 0."""
        self._all_waited_s = 0.0
        self.note("builds its graph")

    def describe(self, replica: Replica) -> None:
        """Record what each step exchanges with each ps."""
        self._record.describe(exchanges(replica))

    def begin_session(self) -> None:
        """Begin to join, for the first time or again."""
        self._pulse.restart()
        self.note("waits for the parameter servers")

    def lose_session(self, step: int) -> None:
        """Note that an error has ended what was going on, after the global step ``step``."""
        self._record.end(step, is_whole=False)
        self._record.begin("starting")

    def begin_steps(self, owes: Callable[[], bool]) -> None:
        """Begin to take steps; ``owes`` returns whether a step that lasts is this worker's own."""
        self._pulse.ask = owes
        self._known = set()

    def begin_step(self, fetches: Tuple[bool, ...]) -> None:
        """Begin a step, which is a first one if these fetches are new.

        TensorFlow places the graph again for other fetches than before: such a step takes as long as a first one.
        """
        is_first = fetches not in self._known
        self._record.begin("first step" if is_first else "step")
        if is_first:
            self._known.add(fetches)
            self._pulse.begin_phase("first step")

    def end_step(self, step: int, stepper: BaseWorker) -> None:
        """Record a step, and how long it has waited for others."""
        self._waited_s = (stepper.waited_s or 0.0) - self._all_waited_s
        self._all_waited_s += self._waited_s
        self._record.end(step, None if stepper.waited_s is None else self._waited_s, stepper.longest_wait)

    def await_step(self) -> None:
        """Count what is done from here on to the next step."""
        self._begin_phase("step")

    def begin(self, phase: str) -> None:
        """Begin another phase than a step."""
        self._begin_phase(phase)
        self._record.begin(phase)

    def end(self, step: int) -> None:
        """Record the phase that has begun."""
        self._record.end(step)

    @contextlib.contextmanager
    def pause(self, phase: str, step: int) -> Iterator[None]:
        """Inside is a phase between two steps; it is recorded if it is long enough to be seen."""
        self.begin(phase)
        yield
        self._record.end_pause(step)

    def _begin_phase(self, phase: str) -> None:
        self._pulse.begin_phase(phase, self._waited_s)
        self._waited_s = 0.0
