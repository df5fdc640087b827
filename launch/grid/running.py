"""The runs of a grid. Each is attached, in a thread. It ends cleanly with the grid, and leaves nothing on its hosts.

A point whose earlier run failed, or was cut off by Ctrl-C, resumes from its newest checkpoint. Points start one
after the other. Each starts once the previous one is up, so that two local runs never choose the same ports.
"""

import json
import math
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from cluster.spec.model import Spec
from launch.errors import CannotStart, Interrupted, LaunchError, ProblemKind
from launch.grid.points import FINISHED, GridPoint, GridReport, following, noted, report
from launch.grid.record import GridFolder
from launch.history import ask_for_runs
from launch.run.draft import RunStart
from launch.run.lifecycle import Display, Ended, train_with_failover
from launch.signals import Interrupts, NoSignals
from launch.status.run import RunStatus
from launch.target import Target, remember
from launch.view.plain_view import View

LOOK_S = 0.2
BUSY_S = 10.0  # before another try on hosts that other runs keep busy
PATIENCE_S = 86400.0  # for such hosts


class PointRun(View):
    """A run of a point, in a thread. The object is also the view of that run, and stores its newest status.

    Args:
      say: prints lines after the end of the run, such as the last lines of a log.
    """

    def __init__(self, target: Target, resume: bool, pool: ThreadPoolExecutor, say: Callable[..., None]):
        super().__init__()
        self.status: Optional[RunStatus] = None
        self.interrupts = NoSignals()
        self._target, self._resume, self._say_after = target, resume, say
        self.ended: Future[Ended] = pool.submit(self._train)

    def _train(self) -> Ended:
        start = RunStart(self._target.spec(), resume=self._resume, needed=not self._resume)
        return train_with_failover(
            self._target, start, self.interrupts, lambda status: [], Display(self, self._say_after)
        )

    @property
    def is_starting(self) -> bool:
        """Return whether the run has begun to start and is not up yet."""
        return not self.ended.done() and (self.status is None or self.status.state == "starting")

    def note(self, text: str) -> None:
        """Print nothing: the grid shows a table."""

    def show(self, status: RunStatus) -> None:
        """Store the newest status."""
        self.status = status


class Grid:
    """The training of every point that has no result yet.

    Args:
      target: the hosts file, without the values of a point.
      overrides: the values of each point, as ``--set`` takes them.
      spec: the spec of the file, without the values of a point.
      show: a function that receives the newest report, several times a second.
      say: prints lines about a run that has ended.
    """

    def __init__(
        self,
        target: Target,
        overrides: Sequence[Tuple[str, ...]],
        spec: Spec,
        folder: GridFolder,
        points: List[GridPoint],
        interrupts: Interrupts,
        show: Callable[[GridReport], None],
        say: Callable[..., None],
    ):
        self._target, self._overrides, self._spec, self._folder = target, overrides, spec, folder
        self._points, self._interrupts, self._show, self._say = points, interrupts, show, say
        self._runs: Dict[int, PointRun] = {}
        self._tried: Set[int] = set()
        self._relayed = 0
        self._next_at, self._busy_since = 0.0, math.inf
        self._error: Optional[LaunchError] = None

    def train(self, at_once: int) -> GridReport:
        """Train ``at_once`` points at a time, and return the outcome; after a signal, stop the runs cleanly.

        A point that fails is not tried again by this method.

        Raises:
          LaunchError: a point cannot start, although its hosts are not busy; the runs of all other points have ended.
        """
        with ThreadPoolExecutor(at_once) as pool:
            try:
                while self._go_on(at_once, pool):
                    time.sleep(LOOK_S)
            except BaseException:
                self._pass_on(signal.SIGTERM)  # the pool waits for the runs
                raise
        if self._error is not None:
            raise self._error
        return report(self._points, self._spec.train.best)

    @property
    def is_halted(self) -> bool:
        """Return whether each point that has ended failed before its first step, as after a mistake in the job.

        The steps of a program may be unknown, so its failures stop no other point.
        """
        ended = [point for point in self._points if point.state in FINISHED]
        has_failed = any(self._points[place].failed_early for place in self._tried)
        return self._spec.command is None and has_failed and all(point.failed_early for point in ended)

    def _go_on(self, at_once: int, pool: ThreadPoolExecutor) -> bool:
        """Pass signals on, look at the runs, start a point where there is room, and return whether there is more."""
        for number in self._interrupts.received[self._relayed :]:
            self._relayed += 1
            self._pass_on(number)
        before = list(self._points)
        for place, run in list(self._runs.items()):
            self._look(place, run)
        more = self._begin(at_once, pool)
        if self._points != before:
            self._write()
        self._show(report(self._points, self._spec.train.best))
        return more or bool(self._runs)

    def _pass_on(self, number: int) -> None:
        for run in self._runs.values():
            run.interrupts.received.append(number)

    def _write(self) -> None:
        """Write the record; where that fails, begin no further point, because its result would be lost."""
        try:
            self._folder.write(self._points)
        except OSError as error:
            self._error = LaunchError(f"{self._folder.path}: cannot write the grid's record: {error.strerror}")

    def _begin(self, at_once: int, pool: ThreadPoolExecutor) -> bool:
        """Start the next point where there is room, and return whether there is one."""
        place = following(self._points, [*self._runs, *self._tried])
        if place is None or self._interrupts.received or self._error is not None or self.is_halted:
            return False
        is_free = len(self._runs) < at_once and not any(run.is_starting for run in self._runs.values())
        if is_free and time.monotonic() >= self._next_at:
            try:
                self._folder.refuse_changed_code()  # the start of a run reads the code again
            except LaunchError as error:
                self._error = error
                return False
            self._start(place, pool)
        return True

    def _start(self, place: int, pool: ThreadPoolExecutor) -> None:
        point = self._points[place]
        resumes = point.run is not None and (self._spec.command is None or self._spec.keeps_state)
        self._runs[place] = PointRun(self._target_of(place), resumes, pool, self._say)
        self._points[place] = replace(point, state="starting", value=None, cause=None)

    def _target_of(self, place: int) -> Target:
        name, folder = self._points[place].name, self._spec.train.checkpoint.dir
        own = [f"name={json.dumps(name)}"]
        own += [] if folder is None else [f"train.checkpoint.dir={json.dumps(f'{folder}/{name}')}"]
        overrides = (*self._target.overrides, *own, *self._overrides[place])
        return replace(self._target, overrides=overrides, interrupts=NoSignals)

    def _look(self, place: int, run: PointRun) -> None:
        """Note the state of a run, and its end."""
        if not run.ended.done():
            if run.status is not None:
                self._note(place, run.status)
            return
        del self._runs[place]
        self._next_at = 0.0  # the hosts may be free now
        try:
            ended = run.ended.result()
        except Interrupted as error:
            self._points[place] = replace(self._points[place], state="stopped")
            for line in str(error).split("\n")[1:]:  # hosts on which something may be left
                self._say(f"{self._points[place].name}: {line}")
        except LaunchError as error:
            self._not_started(place, error)
        else:
            self._note(place, ended.status)
            self._tried.add(place)
            self._busy_since = math.inf

    def _note(self, place: int, status: RunStatus) -> None:
        """Note the status of a point's run; later verbs then look for runs of the file where the newest run is."""
        spec = self._spec
        if self._points[place].run != status.run:
            here = replace(spec, local=True, workdir=spec.local_workdir)
            remember(here if self._target.local else spec, status.run)
        self._points[place] = noted(self._points[place], status, spec.train.best)

    def _not_started(self, place: int, error: LaunchError) -> None:
        """Wait for busy hosts, or end the grid with the error."""
        self._points[place] = replace(self._points[place], state="waiting", cause=str(error).partition("\n")[0])
        now = time.monotonic()
        self._busy_since = min(self._busy_since, now)
        if not self._is_busy(error) or now - self._busy_since > PATIENCE_S:
            self._error = error
        else:
            self._next_at = math.inf if self._runs else now + BUSY_S

    def _is_busy(self, error: LaunchError) -> bool:
        """Return whether hosts refused a run while another run of anybody, known to them, lives there."""
        if not isinstance(error, CannotStart) or any(each.kind is not ProblemKind.REFUSED for each in error.problems):
            return False
        if self._runs:
            return True
        with replace(self._target, interrupts=NoSignals).reach_hosts() as fleet:
            answers, _ = ask_for_runs(fleet)
        return any(each.lives for answer in answers.values() for each in answer.runs)
