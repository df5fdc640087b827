"""The view of an attached run: a live table in a terminal, plain lines elsewhere."""

import sys
import time
from collections import Counter
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, Optional, TextIO, Type

from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from launch.agent.text.plain_text import without_controls
from launch.status import incident_text
from launch.status.run import RunStatus
from launch.status.states import ENDED
from launch.status.task import TaskStatus
from launch.view.console import fold, make_console
from launch.view.formations import formation
from launch.view.task_table import COLOURS, task_table

EVERY_S = 5.0
STARTING_EVERY_S = 2.0
MOST_NAMED = 3
BAR_WIDTH = 60
MOST_INCIDENTS = 3


class View:
    """Print a run's status in plain lines as it changes; ``LiveView`` is for a terminal."""

    def __init__(self, output: Optional[TextIO] = None):
        self._output = output or sys.stdout
        self._began = time.monotonic()
        self._said_at = 0.0
        self._told: Dict[Any, Any] = {}

    def __enter__(self) -> "View":
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """Do nothing, because there is nothing to undo."""

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Leave the terminal as others expect it."""
        yield

    def note(self, text: str) -> None:
        """Print a line of its own."""
        print(f"[{time.monotonic() - self._began:6.1f} s] {without_controls(text)}", file=self._output, flush=True)

    def show(self, status: RunStatus) -> None:
        """Print what is new: changes of state at once, progress every ``EVERY_S`` seconds."""
        for line in self._news(status):
            self.note(line)

    def _news(self, status: RunStatus) -> List[str]:
        lines = []
        for task in status.tasks:
            name, trouble = task.title, (task.state, task.cause, task.restarts)
            if task.cause and self._told.get(name) != trouble:
                self._told[name] = trouble
                lines.append(f"{name} {task.state}: {task.cause}")
        overall = (status.state, count(status))
        if self._told.get("") != overall:
            self._told[""] = overall
            lines.append(f"{status.state}: {overall[1]}")
        lines += self._starts(status)
        formed = formation(status)
        if self._told.get("formation", []) != formed:
            self._told["formation"] = formed
            lines += formed
        for incident in status.incidents:
            if not incident.open and self._told.get(("over", incident.number)) is None:
                self._told[("over", incident.number)] = True
                lines.append(incident_text.sentence(incident))
        told = status.evaluation
        if told and self._told.get("evaluation") != told:
            self._told["evaluation"] = told
            lines.append(evaluation(told))
        now = time.monotonic()
        if status.global_step is not None and (now - self._said_at >= EVERY_S or self._told.get("step") is None):
            self._said_at, self._told["step"] = now, status.global_step
            lines.append(progress(status))
        return lines

    def _starts(self, status: RunStatus) -> List[str]:
        """Return the activities of starting tasks, if they have changed.

        The method returns news at most every ``STARTING_EVERY_S`` seconds.
        """
        doing, now = starting(status), time.monotonic()
        if doing == self._told.get("starting", "") or now - self._told.get("starting at", 0.0) < STARTING_EVERY_S:
            return []
        self._told.update({"starting": doing, "starting at": now})
        return [doing] if doing else []


class LiveView(View):
    """A progress bar and a table of the tasks, redrawn in place."""

    def __init__(self) -> None:
        super().__init__()
        self._console = make_console()
        self._live = Live(console=self._console, refresh_per_second=4)

    def __enter__(self) -> "View":
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._live.__exit__(kind, error, trace)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        self._live.stop()
        try:
            yield
        finally:
            self._live.start(refresh=True)

    def note(self, text: str) -> None:
        self._console.print(Text(without_controls(text)))

    def show(self, status: RunStatus) -> None:
        self._live.update(picture(status))


def for_terminal() -> View:
    """Return the view that suits stdout."""
    return LiveView() if sys.stdout.isatty() else View()


def slowness(status: RunStatus) -> List[str]:
    """Return a line about the tasks that are slow; nothing where none is.

    Example: ``slow: worker:3@gpu02 45.2 ms of own work per step; the other workers wait 31 % of each step``.
    """
    slow = [task for task in status.tasks if task.straggler]
    if not slow:
        return []
    each = ", ".join(f"{task.title} {own_ms(task):.1f} ms" for task in slow)
    share = 100 * (status.waiting_share or 0.0)
    return [f"slow: {each} of own work per step; the other workers wait {share:.0f} % of each step"]


def own_ms(task: TaskStatus) -> float:
    """Return the milliseconds of a step that a worker needs for its own work."""
    return max(0.0, (task.step_time_ms or 0.0) - (task.wait_ms or 0.0))


def count(status: RunStatus) -> str:
    """Return the number of tasks in each state: ``3 running, 1 restarting``."""
    return ", ".join(f"{number} {state}" for state, number in Counter(t.state for t in status.tasks).items())


def starting(status: RunStatus) -> str:
    """Return the activities of starting tasks, the most common first; empty if nothing starts.

    Example: ``builds its graph: worker:0, worker:1; loads TensorFlow: ps:0``.
    """
    doing: Dict[str, List[str]] = {}
    for task in status.tasks:
        if task.doing:
            doing.setdefault(task.doing, []).append(task.name)
    return "; ".join(f"{what}: {_some(doing[what])}" for what in sorted(doing, key=lambda what: -len(doing[what])))


def _some(names: List[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(names) if more < 2 else f"{', '.join(names[:MOST_NAMED])} and {more} more"


def progress(status: RunStatus) -> str:
    """Return ``step 840/2000 (42 %), 31.2 steps/s, 3994 examples/s, loss 0.21``."""
    step, steps = status.global_step or 0, status.steps
    parts = [f"step {step}" if not steps else f"step {step}/{steps} ({100 * step // steps} %)"]
    if status.steps_per_second:
        parts += [f"{status.steps_per_second:.1f} steps/s", f"{status.examples_per_second:.0f} examples/s"]
    if status.loss is not None:
        parts.append(f"loss {status.loss:.4g}")
    return ", ".join(parts)


def metric(name: str, value: float) -> str:
    """Return a metric as text: ``accuracy 97.6 %``, ``loss 0.0812``."""
    return f"{name} {100 * value:.1f} %" if name.endswith("accuracy") else f"{name} {value:.4g}"


def evaluation(told: Mapping[str, float]) -> str:
    """Return ``evaluator: step 800, loss 0.0812, accuracy 97.6 %``."""
    metrics = ", ".join(metric(name, value) for name, value in told.items() if name != "step")
    where = f"step {told['step']:.0f}" if "step" in told else "an unknown step"
    return f"evaluator: {where}, {metrics}"


def unheard(status: RunStatus) -> List[str]:
    """Return a line with the hosts whose agents the lead receives nothing from right now.

    A run that has ended has no such line.
    """
    silent = status.silent
    return [f"no messages now from {fold(silent)}"] if silent and status.state not in ENDED else []


def picture(status: RunStatus) -> RenderableType:
    """Return the run as a bar and a table.

    Of many tasks, the table has first those that do not simply run.
    """
    head = Text(f"{status.run}  {status.state}", style=COLOURS.get(status.state, "bold"))
    parts: List[RenderableType] = [head]
    if status.global_step is not None and status.steps:
        parts.append(ProgressBar(total=status.steps, completed=status.global_step, width=BAR_WIDTH))
        parts.append(Text(""))  # the bar ends no line
    if status.global_step is not None:
        parts.append(Text(progress(status)))
    if status.evaluation:
        parts.append(Text(evaluation(status.evaluation)))
    parts += [Text(line, style="yellow") for line in (*formation(status), *unheard(status), *slowness(status))]
    incidents = [Text(line) for line in incident_text.lines(status.incidents, MOST_INCIDENTS)]
    return Group(*parts, task_table(status.tasks), *incidents)


def print_status(status: RunStatus) -> None:
    """Print ``launch status`` for a person."""
    console = make_console()
    console.print(picture(status))
    if status.cause:
        console.print(Text(f"cause: {status.cause}"))
