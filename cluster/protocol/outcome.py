"""The reports of a task about itself: files in its own folder, which its agent reads.

The task replaces ``progress.json`` at most once a second while it trains, and writes ``outcome.json`` once, just before
it ends. Exit code 0 alone proves nothing: a task has succeeded only if its outcome reports success.
"""

import contextlib
import json
import os
import socket
import time
import traceback
from dataclasses import asdict, dataclass, field
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Type, TypeVar, Union

from cluster.errors import JobError, TaskError, TrainingError
from cluster.protocol import failure_kinds
from cluster.protocol.flight_recorder import FlightRecorder
from cluster.protocol.heartbeat import Heartbeat
from cluster.protocol.shared_files import ANY_NUMBER, read_record, replace_file, reserve_file

PROGRESS = "progress.json"
OUTCOME = "outcome.json"
GRAPH_MISTAKE = 3  # exit code of jobs.describe for a mistake in the job; Python itself never ends with this code
WORK = "work"  # the task's working folder, next to its other files
_ROOM = ".outcome.room"  # is renamed to the outcome's file where the disk has no room for a new file
_ROOM_BYTES = 4096
LARGEST = 1 << 20  # bytes of either file
_LONGEST_TRACE = 100_000  # characters
_LONGEST_NAME = 100
_MOST_WARNINGS = 20
_HOPELESS = (ImportError, SyntaxError)  # of Python: another attempt would find the same files
T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """The progress of a task. ``examples`` counts the examples of this task since its start.

    ``joins``: how often this process has joined the run; ``joined_step``: the global step at which it joined last.

    ``ignored_gradients``: gradients of this task since its start that were not finite (``train.on_nan: ignore``);
    ``dropped_gradients``: gradients that arrived after the end of their step (``train.backup_workers``); ``waited_s``:
    seconds for which the task waited for the other workers' gradients, None if workers do not wait for each other.

    Only the chief has the next four, and ``curve``. ``saving_s``: seconds since its start that the chief spent saving
    and measuring between steps; ``checkpoint_problem``: the reason why checkpoints fail now, None once a checkpoint has
    been written; ``save_begun`` and ``save_done``: the newest request for a checkpoint (``save_request``) that the
    chief took up, and the newest that it completed. ``metrics``: from an evaluator on held-out examples, or from the
    chief on training examples. ``best``: the step of the best checkpoint so far, and its metric (``train.best``).
    ``passed_over``: the unreadable checkpoints and the reasons, as long as the chief's process lives;
    ``passed_over_from`` and ``passed_over_to``: the step of the newest unreadable checkpoint, and the restored step.
    ``warnings``: mistakes of the job's author that do not end the run, one sentence each. ``curve`` and ``curve_from``:
    the newest points of the loss, and the number of points before them (``loss_points``).

    Only a program under ``command:`` has ``rate``, its examples per second, and ``reports``: the number of its reports
    whose step differs from the step before (``progress_lines``).
    """

    step: int
    loss: Optional[float] = field(default=None, metadata=ANY_NUMBER)
    step_time_ms: Optional[float] = None
    examples: int = 0
    checkpoint_step: Optional[int] = None
    ignored_gradients: int = 0
    dropped_gradients: int = 0
    waited_s: Optional[float] = None
    checkpoint_problem: Optional[str] = None
    save_begun: Optional[int] = None
    save_done: Optional[int] = None
    metrics: Dict[str, float] = field(default_factory=dict, metadata=ANY_NUMBER)
    time: float = 0.0  # seconds since the epoch, by the task's own clock
    best: Dict[str, float] = field(default_factory=dict)
    saving_s: float = 0.0
    passed_over: Optional[str] = None
    passed_over_from: int = 0
    passed_over_to: int = 0
    warnings: List[str] = field(default_factory=list)
    rate: Optional[float] = None
    reports: int = 0
    curve: List[List[float]] = field(default_factory=list, metadata=ANY_NUMBER)
    curve_from: int = 0
    joins: int = 0
    joined_step: Optional[int] = None


@dataclass(frozen=True)
class Outcome:
    """The result of a task. ``retry`` is False if a restart would fail in the same way.

    ``kind`` is one of ``failure_kinds.KINDS``, None for a success. ``missing_module`` names the missing module that
    made the task fail. ``best`` and ``best_checkpoint`` are step, metric and path of the best checkpoint
    (``train.best``). ``ended_early`` is the reason why training ended before its last step. ``frames`` are the author's
    own frames in the traceback, "" without a traceback; None where the whole traceback is needed.
    """

    succeeded: bool
    step: Optional[int] = None
    cause: Optional[str] = None
    traceback: Optional[str] = None
    retry: bool = True
    checkpoint: Optional[str] = None
    checkpoint_step: Optional[int] = None
    metrics: Dict[str, float] = field(default_factory=dict, metadata=ANY_NUMBER)
    time: float = 0.0
    kind: Optional[str] = None
    missing_module: Optional[str] = None
    best: Dict[str, float] = field(default_factory=dict)
    best_checkpoint: Optional[str] = None
    ended_early: Optional[str] = None
    frames: Optional[str] = None

    @classmethod
    def from_exception(cls, error: BaseException, step: Optional[int] = None) -> "Outcome":
        """Return the outcome of a task that ended with ``error``."""
        text = str(error).strip()
        own = isinstance(error, (JobError, TaskError, TrainingError))
        cause = text if own and text else f"{type(error).__name__}: {text}".rstrip(": ")
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        frames = failure_kinds.author_frames(error)
        return cls(
            False, step, _short(cause), trace[-_LONGEST_TRACE:], retry=not own and not isinstance(error, _HOPELESS),
            kind=failure_kinds.kind_of(error), missing_module=failure_kinds.missing_module(error),
            frames="\n".join(frames) if frames or own else None,
        )  # fmt: skip


class Reporter:
    """A writer of a task's progress, outcome, heartbeat and newest steps into ``folder``; None: it writes nothing.

    ``job_dir`` is the author's own folder; the task runs a copy of the folder. Errors name the files of ``job_dir``.
    ``attempt`` is the number of earlier attempts of the task.
    """

    def __init__(
        self,
        folder: Optional[Union[str, Path]],
        clock: Callable[[], float] = time.time,
        every_s: float = 1.0,
        job_dir: Optional[str] = None,
        attempt: int = 0,
    ):
        self._folder = None if folder is None else Path(folder)
        self.heartbeat = Heartbeat(folder)
        self.recorder = FlightRecorder(folder, attempt)
        self._clock, self._job_dir, self.attempt = clock, job_dir, attempt
        self._every_s = every_s
        self._written_at: Optional[float] = None
        self._failing = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Reporter":
        """Return the reporter of a task that an agent started; for another process, a reporter that writes nothing."""
        attempt = environ.get("LAUNCH_ATTEMPT", "")
        return cls(
            environ.get("LAUNCH_TASK_DIR"), job_dir=environ.get("LAUNCH_JOB_DIR"),
            attempt=int(attempt) if attempt.isdigit() else 0,
        )  # fmt: skip

    def beside(self, name: str) -> Optional[Path]:
        """Return the folder ``name`` next to the run's task folders on this host; None without a task folder."""
        return None if self._folder is None else self._folder.parent / name

    @property
    def folder(self) -> Optional[Path]:
        """Return the task's own folder; None if the reporter writes nothing."""
        return self._folder

    def due(self) -> bool:
        """Return whether ``progress`` would write now.

        Call ``due`` before fetching values that are expensive.
        """
        now = self._clock()
        return self._written_at is None or now - self._written_at >= self._every_s

    def progress(self, progress: Progress, force: bool = False) -> None:
        """Replace the progress file, at most every ``every_s`` seconds unless forced; never raise OSError.

        The first call also reserves disk space for the outcome, because the disk may be full when the task ends.
        """
        if force or self.due():
            first = self._written_at is None
            self._written_at = self._clock()
            warnings = [self._as_the_author_knows_it(text) for text in progress.warnings]
            self._replace(PROGRESS, {**asdict(progress), "warnings": warnings, "time": self._written_at})
            if first and self._folder is not None:
                with contextlib.suppress(OSError):
                    reserve_file(self._folder / _ROOM, _ROOM_BYTES)

    def failure(self, error: BaseException, step: Optional[int] = None) -> Outcome:
        """Write the outcome of a task that ended with ``error``, and return the outcome."""
        outcome = Outcome.from_exception(error, step)
        texts = {name: getattr(outcome, name) for name in ("cause", "traceback", "frames")}
        known = {name: text and self._as_the_author_knows_it(text) for name, text in texts.items()}
        outcome = replace_fields(outcome, **known)
        self.outcome(outcome)
        return outcome

    def _as_the_author_knows_it(self, text: str) -> str:
        """Return a text with the files of the task's copy replaced by the author's original files."""
        if self._folder is None or self._job_dir is None:
            return text
        for work in (self._folder / WORK, (self._folder / WORK).resolve()):  # may be a link
            text = text.replace(f"{work}{os.sep}", os.path.join(self._job_dir, ""))
        return text

    def outcome(self, outcome: Outcome) -> None:
        """Write the outcome file; if the disk is full, omit the traceback. Never raise OSError."""
        values = {**asdict(outcome), "time": self._clock()}
        if not self._replace(OUTCOME, values) and self._folder is not None:
            with contextlib.suppress(OSError):
                replace_file(self._folder / _ROOM, json.dumps({**values, "traceback": None}))
                os.replace(str(self._folder / _ROOM), str(self._folder / OUTCOME))
        elif self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / _ROOM).unlink()

    def _replace(self, name: str, values: Mapping[str, Any]) -> bool:
        """Write ``values`` to the file ``name``, and return whether that succeeded.

        The method prints only the first of consecutive failures. Without a folder the method writes nothing, and
        returns True.
        """
        if self._folder is None:
            return True
        try:
            replace_file(self._folder / name, json.dumps(values))
        except OSError as error:
            if not self._failing:
                print(
                    f"{self._folder / name} on {socket.gethostname()} cannot be written: {error.strerror}", flush=True
                )
            self._failing = True
            return False
        self._failing = False
        return True


def read_progress(folder: Union[str, Path]) -> Optional[Progress]:
    """Return the newest progress in ``folder``; None if the task has not reported yet.

    Raises:
      OSError: the file cannot be read, or is not a regular file.
      ValueError: the file contains no progress.
    """
    progress = _read(Path(folder) / PROGRESS, Progress)
    if progress is None:
        return None
    problem, passed = progress.checkpoint_problem, progress.passed_over
    if not (problem or passed or progress.warnings):
        return progress
    warnings = [_short(text) for text in progress.warnings[:_MOST_WARNINGS]]
    return replace_fields(
        progress,
        checkpoint_problem=problem and _short(problem),
        passed_over=passed and _short(passed),
        warnings=warnings,
    )


def read_outcome(folder: Union[str, Path]) -> Optional[Outcome]:
    """Return the outcome in ``folder``; None if the task wrote no outcome. Raises the errors of ``read_progress``."""
    outcome = _read(Path(folder) / OUTCOME, Outcome)
    for path in (outcome.checkpoint, outcome.best_checkpoint) if outcome is not None else ():
        if not (path or "").isprintable():
            raise ValueError("checkpoint: expected a path of printable characters, found control characters")
    if outcome is not None and outcome.kind not in (None, *failure_kinds.KINDS):
        raise ValueError(f"kind: expected one of {', '.join(failure_kinds.KINDS)}, found {ascii(outcome.kind)[:60]}")
    if outcome is None:
        return None
    return replace_fields(
        outcome, cause=outcome.cause and _short(outcome.cause),
        ended_early=outcome.ended_early and _short(outcome.ended_early),
        missing_module=outcome.missing_module and _short(outcome.missing_module, _LONGEST_NAME),
    )  # fmt: skip


def _read(path: Path, kind: Type[T]) -> Optional[T]:
    try:
        return read_record(path, kind, LARGEST)
    except FileNotFoundError:
        return None


def _short(text: str, limit: int = 500) -> str:
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"


def one_line(text: str) -> str:
    """Return ``text`` as one line: control characters and runs of white space become single spaces."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())
