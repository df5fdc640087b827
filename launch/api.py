"""The interface for Python: ``import launch``.

    run = launch.up("hosts.yaml", set={"train.steps": 100})   # a detached run, as by `launch up -d`
    run.wait()                                                # returns the last status, or raises RunFailed

Each function does in this process what the verb of the same name does. It prints nothing (lines go to the logger
``launch``), and raises the errors of ``launch.errors``. It installs no signal handlers, so a notebook's kernel keeps
its own. The run continues without this process: a later ``launch.Run("hosts.yaml")`` finds the newest run.
"""

import json
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple, Union

import launch.status
from launch.errors import CannotStart, FoundWrong, LaunchError, RunFailed, UsageError
from launch.history import list_runs, locate, newest_status
from launch.logs.task_logs import print_logs, select
from launch.run.draft import RunStart
from launch.run.follower import Follower
from launch.run.lifecycle import Display, Ended, train_with_failover
from launch.run.resume import refuse_resume
from launch.signals import Interrupts, NoSignals
from launch.status.run import ENDED, RunRecord, RunStatus
from launch.status.run_history import RunHistory
from launch.target import Target
from launch.teardown import in_lines, look_and_take_down
from launch.view.notebook_view import NotebookView, as_html

HostsFile = Union[str, Path]
Overrides = Optional[Mapping[str, Any]]
LOOK_S = 0.2


def up(
    file: HostsFile = "hosts.yaml",
    *,
    set: Overrides = None,
    local: Optional[bool] = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    resume: bool = False,
    run: Optional[str] = None,
) -> "Run":
    """Start a detached run, and return it once every task is up, or the run has ended.

    Args:
      file: the hosts file.
      set: values that override keys of the file: {"train.steps": 100}.
      local: whether every task runs on this machine, without SSH.
      include: keep only these hosts or tasks.
      exclude: leave out these hosts or tasks.
      resume: continue from the newest checkpoint, or from the checkpoint of ``run``.
      run: with ``resume``, the run to continue from.

    Raises:
      SpecError, UsageError: the file or an argument is wrong.
      CannotStart: hosts cannot take part; the error also names hosts on which something of the start may be left.
      KeyboardInterrupt: Ctrl-C interrupted the start, which has been undone.
    """
    target = _target(file, set, local, include, exclude, run)
    if run is not None and not resume:
        raise UsageError(
            "run: expected resume=True together with run, found resume=False; a new run gets a name of its own"
        )
    spec = target.spec()
    if resume:
        refuse_resume(spec, run)
    start, view = RunStart(spec, resume=resume, source=run, detach=True), NotebookView()

    def begin(interrupts: Interrupts) -> Ended:
        return train_with_failover(target, start, interrupts, lambda status: [], Display(view, view.say))

    return Run(file, _undone_on_ctrl_c(begin).status.run, set=set, local=local, include=include, exclude=exclude)


def _undone_on_ctrl_c(begin: Callable[[Interrupts], Ended]) -> Ended:
    """Start a run in a thread, because KeyboardInterrupt, which may come at any line, would leave agents behind."""
    interrupts = NoSignals()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()  # starts the thread: KeyboardInterrupt during that would lose it
        try:
            begun = pool.submit(begin, interrupts)
            while not begun.done():  # a signal that comes just as a wait begins is handled at its end
                wait([begun], LOOK_S)
            return begun.result()
        except KeyboardInterrupt:
            interrupts.received.append(signal.SIGINT)
            raise


def status(
    file: HostsFile = "hosts.yaml",
    run: Optional[str] = None,
    *,
    set: Overrides = None,
    local: Optional[bool] = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> RunStatus:
    """Return the status of the newest run of a file, or of the run that ``run`` names.

    Raises:
      SpecError, UsageError: the file or an argument is wrong, or no run exists.
      CannotStart: the host that leads the run is out of reach.
    """
    return _status(_target(file, set, local, include, exclude, run))


def runs(
    file: HostsFile = "hosts.yaml",
    *,
    set: Overrides = None,
    local: Optional[bool] = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> List[RunRecord]:
    """Return every run on the hosts of a file, of any name, newest first.

    Raises:
      SpecError, UsageError: the file or an argument is wrong.
      CannotStart: hosts cannot be asked, so that runs may be missing.
    """
    with _target(file, set, local, include, exclude).reach_hosts() as fleet:
        found = list_runs(fleet)
    if found.problems:
        raise CannotStart(found.problems)
    return found.runs


class Run:
    """A run of a hosts file: the run with the name ``run``, or by default the newest run.

    Each method, and the property ``status``, asks the hosts again. The other arguments are those of ``launch.up``.

    Raises:
      SpecError, UsageError: the file or an argument is wrong, or no run exists.
      CannotStart: without ``run``, the host that leads the run is out of reach.
    """

    def __init__(
        self,
        file: HostsFile = "hosts.yaml",
        run: Optional[str] = None,
        *,
        set: Overrides = None,
        local: Optional[bool] = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
    ):
        target = _target(file, set, local, include, exclude, run)
        self._target = target if run is not None else replace(target, run=_status(target).run)

    @property
    def name(self) -> str:
        """Return the full name of the run, which ``--run`` takes."""
        return str(self._target.run)

    @property
    def status(self) -> RunStatus:
        """Return the run's status, the object of ``status --json``. Raises CannotStart, UsageError."""
        return _status(self._target)

    def history(self) -> RunHistory:
        """Return the run's learning curve from its first step, as ``status --json`` prints it.

        With ``curve = run.history()``, ``pandas.DataFrame({"step": curve.step, "loss": curve.loss})`` is a table.
        Raises CannotStart, UsageError.
        """
        return self.status.history

    def wait(self, timeout_s: Optional[float] = None) -> RunStatus:
        """Follow the run to its end, and return its last status; a notebook shows a progress bar meanwhile.

        Ctrl-C ends only the waiting; the run continues.

        Args:
          timeout_s: the most seconds to wait; None for no limit.

        Raises:
          RunFailed: the run failed or was stopped; the error's text has the cause.
          TimeoutError: the run has not ended within ``timeout_s``.
          CannotStart: the host that leads the run is out of reach.
        """
        view, until = NotebookView(), None if timeout_s is None else time.monotonic() + timeout_s
        with self._target.reach() as fleet:
            found = newest_status(fleet, str(self._target), view.note)
            if found.state not in ENDED:
                found = _Bounded(fleet, found, view, until).follow()
        view.show(found)
        if found.state not in ENDED:
            raise TimeoutError(f"{found.run}: expected the run to end within {timeout_s} s, found it {found.state}")
        if found.state != "succeeded":
            raise RunFailed(found.run, found.state, found.cause or "its cause is not known")
        return found

    def logs(self, *tasks: str, tail: Optional[int] = None) -> str:
        """Return the lines of the tasks' logs, sorted by time; each line begins with its task and host.

        Args:
          tasks: patterns such as worker:1, ps:* or a host's name; without patterns, all tasks.
          tail: the number of last lines to return for each task; None for all lines.

        Raises:
          UsageError: a pattern matches no task.
          CannotStart: a host did not send all its lines.
        """
        lines: List[str] = []
        with self._target.reach() as fleet:
            locate(fleet)
            problems = print_logs(fleet, select(fleet.tasks, tasks), lines.append, raw=True, tail=tail)
        if problems:
            raise CannotStart(problems)
        return "".join(f"{line}\n" for line in lines)

    def down(self) -> List[str]:
        """End the run cleanly, and return a line for each host about the ended processes and freed resources.

        Raises:
          FoundWrong: something of the run is left on a host, or a host does not answer.
        """
        with self._target.reach() as fleet:
            left = look_and_take_down(fleet, reason="run.down()")
        if not left.clean:
            raise FoundWrong("\n".join(in_lines(left)))
        return in_lines(left)

    def __repr__(self) -> str:
        return f"<launch.Run {self.name}>"

    def _repr_html_(self) -> str:
        """Return the run as a notebook shows it."""
        try:
            return as_html(self.status)
        except LaunchError as error:
            return f"<pre>{escape(f'{self.name}: {error}')}</pre>"


class _Bounded(Follower):
    """Follow a run for a limited time."""

    def __init__(self, fleet: Any, found: RunStatus, view: NotebookView, until: Optional[float]):
        super().__init__(fleet, found, view)
        self._until = until

    def is_unwanted(self) -> bool:
        """Return whether the time is over."""
        return self._until is not None and time.monotonic() >= self._until


def _target(
    file: HostsFile,
    set: Overrides,
    local: Optional[bool],
    include: Sequence[str],
    exclude: Sequence[str],
    run: Optional[str] = None,
) -> Target:
    given = _written(set or {})
    return Target(str(file), local, given, tuple(include), tuple(exclude), run, interrupts=NoSignals)


def _written(values: Mapping[str, Any]) -> Tuple[str, ...]:
    """Return values as ``--set`` takes them; JSON is YAML, so that each keeps its type.

    Raises:
      UsageError: a value is of no type of JSON.
    """
    try:
        return tuple(f"{key}={json.dumps(value, allow_nan=False)}" for key, value in values.items())
    except (TypeError, ValueError) as error:
        raise UsageError(f"set: expected values of JSON (numbers, texts, lists, mappings), found {error}") from None


def _status(target: Target) -> RunStatus:
    with target.reach() as fleet:
        return newest_status(fleet, str(target), NotebookView().note)


class _StatusModule(ModuleType):
    """The package ``launch.status``, which has the name of a verb: ``launch.status("hosts.yaml")``."""

    def __call__(self, *arguments: Any, **options: Any) -> RunStatus:
        return status(*arguments, **options)


sys.modules[launch.status.__name__].__class__ = _StatusModule
