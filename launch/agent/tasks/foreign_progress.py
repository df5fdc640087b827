"""The progress of programs under ``command:``, as their logs and their files ``$LAUNCH_PROGRESS`` show it.

The agent reports it in the same form as a job's tasks, so the lead handles both alike. The files belong to the program,
which may truncate, remove or fill them. So ``look`` reads at most the newest ``PIECE`` bytes of each file.

The search time of a regular expression may double with each character. Python can interrupt a search only by a signal.
So a timer of the agent's processor time ends a search that takes too long. After ``MOST_LATE`` such searches, the agent
stops searching.
"""

import contextlib
import math
import os
import signal
import sys
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Deque, Dict, Iterator, List, Mapping, Optional, Pattern, Sequence, Tuple

from cluster.protocol.outcome import Progress
from cluster.protocol.progress_lines import FILE, LONGEST, LOSS, RATE, STEP, Read, compiled, read_json, read_log
from cluster.protocol.shared_files import open_to_read
from launch.agent.errors import AgentError
from launch.agent.protocol.messages import Advanced
from launch.agent.state.log import say_once
from launch.agent.state.run_folder import RunFolder
from launch.agent.tasks.task_log import LogBound
from launch.agent.text import mask, without_controls

LOOK_S, FIRST_S = 1.0, 0.1  # between two looks; before the first step
PIECE = 1 << 16  # bytes of a file that a look reads
SEARCH_S, MOST_LATE = 0.25, 3  # of processor time for one look; and the looks that may exceed it
WINDOW_S = 10.0  # over which the time of a step is measured
SHOWN = 40  # characters of a text that is no number
MANY = 1000  # lines of a log: where none of so many matches, the operator should know


class TooLong(AgentError):
    """The error that a search took too much time, and was ended."""


class Tail:
    """A reader of the lines that a program appends to a file. The program may also truncate or replace the file."""

    def __init__(self, path: Path):
        self._path = path
        self._at, self._of = 0, (0, 0)  # the offset of the next line; device and inode
        self._torn = False  # whether the next byte is in the middle of a line
        self._kept: List[str] = []
        self.ends_within_a_line = False
        self.exists = False
        self.count = 0  # of lines so far

    def keep(self, lines: Sequence[str]) -> None:
        """Make the next call of the method ``lines`` return these lines first."""
        self._kept = [*lines]

    def lines(self, to_end: bool = False) -> List[str]:
        """Return the newest complete lines since the last call, from at most ``PIECE`` bytes.

        With ``to_end``, the method also returns a last line that has no newline.
        The carriage return of a progress bar ends a line, too.
        """
        kept, self._kept = self._kept, []
        try:
            data = self._read()
        except OSError:
            self.exists = False
            return kept
        end = len(data) if to_end else max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        skips = len(data) - end > LONGEST  # a line without end: its rest is skipped, too
        self.ends_within_a_line = data[:end][-1:] not in (b"", b"\n", b"\r")
        whole = data[:end].replace(b"\r", b"\n").split(b"\n")
        if self._torn and end:
            del whole[0]
        self._torn = skips or (self._torn and not end)
        self._at += len(data) if skips else end
        lines = [line.decode(errors="replace") for line in whole if 0 < len(line) <= LONGEST]
        self.count += len(lines)
        return [*kept, *lines]

    def _read(self) -> bytes:
        with open_to_read(self._path) as file:
            found = os.fstat(file.fileno())
            self.exists = True
            if (found.st_dev, found.st_ino) != self._of or found.st_size < self._at:
                self._of, self._at, self._torn = (found.st_dev, found.st_ino), 0, False
            if found.st_size - self._at > PIECE:
                self._at, self._torn = found.st_size - PIECE, True
            file.seek(self._at)
            return file.read(PIECE)


@dataclass
class Followed:
    """The progress file and the log of one attempt, and the values found in them so far.

    Attributes:
      warnings: the warnings in the newest report.
      problems: {name of a value: text of the first problem with it}.
      reports: how often the step has changed since the start of the attempt.
      steps: (time, step) for the newest changes of the step.
      has_matched: whether a line of the log has matched the regular expression.
    """

    attempt: int
    file: Tail
    log: Tail
    bound: LogBound
    look_at: float = 0.0
    values: Dict[str, Any] = field(default_factory=dict)
    warnings: List[str] = field(default_factory=list)
    problems: Dict[str, str] = field(default_factory=dict)
    reports: int = 0
    steps: Deque[Tuple[float, int]] = field(default_factory=deque)
    writes_file: bool = False
    has_matched: bool = False
    has_ended: bool = False

    def read(self, tail: Tail, read: Callable[[Sequence[str]], Read]) -> Read:
        """Return the values in a file's newest lines.

        Before the first report, the method reads only up to the first line with a step. The next call reads the other
        lines.
        """
        lines = tail.lines(self.has_ended)
        if tail.ends_within_a_line and lines and self._is_cut(lines, read):
            lines.pop()
        if not self.reports:
            for number, line in enumerate(lines, 1):
                if STEP in read([line]).values:
                    tail.keep(lines[number:])
                    return read(lines[:number])
        return read(lines)

    def _is_cut(self, lines: Sequence[str], read: Callable[[Sequence[str]], Read]) -> bool:
        """Return whether the last line seems to lack the end of its step: a program was killed while it wrote."""
        before = read(lines[:-1]).values.get(STEP, self.values.get(STEP, 0))
        return read(lines[-1:]).values.get(STEP, before) < before

    def advance(self, now: float, values: Mapping[str, Any]) -> None:
        """Store the newest values, and record a change of the step."""
        before = self.values.get(STEP)
        self.values.update(values)
        step = self.values.get(STEP)
        if step is None or step == before:
            return
        self.reports += 1
        if before is not None and step < before:
            self.steps.clear()
        self.steps.append((now, step))
        while now - self.steps[0][0] > WINDOW_S and len(self.steps) > 2:
            self.steps.popleft()

    @property
    def step_time_ms(self) -> Optional[float]:
        """Return the mean duration of a step, in milliseconds; None before the second change of the step."""
        (since, first), (until, last) = self.steps[0], self.steps[-1]
        return round(1000 * (until - since) / (last - first), 3) if last > first and until > since else None


class ForeignProgress:
    """A reporter of the progress of this host's attempts that write no ``progress.json`` themselves.

    Args:
      expression: the key ``progress`` of the hosts file; None to read only the files ``$LAUNCH_PROGRESS``.
      secrets: variables of the tasks, whose values are hidden in messages.
    """

    def __init__(
        self,
        folder: RunFolder,
        expression: Optional[str],
        emit: Callable[[Advanced], None],
        secrets: Mapping[str, str],
    ):
        self._folder, self._emit, self._secrets = folder, emit, secrets
        self._expression: Optional[Pattern[str]] = None
        self._refused: List[str] = []  # the reason, where this host's Python does not know the launcher's notation
        try:
            self._expression = None if expression is None else compiled(expression)
        except ValueError as error:
            version = ".".join(map(str, sys.version_info[:2]))
            self._refused = [f"Python {version} of its host cannot read the expression: {error}"]
        self._followed: Dict[str, Followed] = {}
        self._late = 0

    def look(self, now: float, task: str, attempt: int, has_ended: bool = False) -> None:
        """Report an attempt's newest values at most every ``LOOK_S``, and once more after its end.

        The first step of an attempt is reported separately, at once: it shows from which step the attempt continues.
        """
        followed = self._of(task, attempt)
        if followed.has_ended or (now < followed.look_at and not has_ended):
            return
        is_first, followed.has_ended = not followed.reports, has_ended
        self._take(now, task, followed)
        if is_first and has_ended:
            self._take(now, task, followed)
        followed.look_at = now + (LOOK_S if followed.reports or followed.log.count >= MANY else FIRST_S)

    def _take(self, now: float, task: str, followed: Followed) -> None:
        read = followed.read(followed.file, read_json)
        if followed.has_ended and followed.reports:
            read.problems.pop(FILE, None)  # a program that was killed may have written half of its last line
        if followed.file.exists:
            followed.bound.look(now)
        followed.writes_file = followed.writes_file or STEP in read.values
        noted = [] if followed.writes_file else self._refused
        if self._expression is not None and not followed.writes_file:
            found, noted = self._search(followed, self._expression)
            read = Read({**found.values, **read.values}, {**found.problems, **read.problems})
        followed.advance(now, read.values)
        self._report(task, followed, read, [*noted, *self._problems(followed, read)])

    def _of(self, task: str, attempt: int) -> Followed:
        followed = self._followed.get(task)
        if followed is None or followed.attempt != attempt:
            file = self._folder.task(task) / FILE
            followed = Followed(attempt, Tail(file), Tail(self._folder.log(task, attempt)), LogBound(file))
            self._followed[task] = followed
        return followed

    def _search(self, followed: Followed, expression: Pattern[str]) -> Tuple[Read, List[str]]:
        """Return the values in the newest lines of a log, and remarks for the operator."""
        if self._late >= MOST_LATE:
            late = f"{MOST_LATE} searches with the expression took more than {SEARCH_S:g} s, so the agent stopped them"
            return Read(), [f"{late}; remove any repetition inside a repetition, such as (a+)+"]
        try:
            with at_most(SEARCH_S):
                read = followed.read(followed.log, lambda lines: read_log(lines, expression))
        except TooLong:
            self._late += 1
            return Read(), []
        if read.values:
            followed.has_matched = True
        many = not followed.has_matched and followed.log.count >= MANY
        return read, ["no line of its log matches the pattern"] if many else []

    def _problems(self, followed: Followed, read: Read) -> List[str]:
        """Return the problems of the newest values; of each kind, always the text of the first one."""
        for name, each in read.problems.items():
            found = mask(without_controls(each.found), self._secrets.values())[:SHOWN]
            followed.problems.setdefault(name, f"{name}: expected {each.expected}, found '{found}'")
        loss = read.values.get(LOSS)
        infinite = [f"loss: expected a finite number, found {loss}"] if loss and not math.isfinite(loss) else []
        return [*(followed.problems[name] for name in read.problems), *infinite]

    def _report(self, task: str, followed: Followed, read: Read, remarks: Sequence[str]) -> None:
        warnings = [f"progress of {task}: {each}" for each in remarks]
        if not read.values and (not warnings or warnings == followed.warnings):
            return
        followed.warnings = warnings
        for each in warnings:
            say_once(each)
        known = followed.values
        if STEP not in known:
            self._emit(Advanced(task, followed.attempt, {"step": None, "warnings": warnings}))
            return
        loss = known.get(LOSS)
        progress = Progress(
            step=known[STEP],
            loss=loss if loss is not None and math.isfinite(loss) else None,
            step_time_ms=followed.step_time_ms,
            time=time.time(),
            warnings=warnings,
            rate=known.get(RATE),
            reports=followed.reports,
        )
        self._emit(Advanced(task, followed.attempt, dict(vars(progress))))


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TooLong in the block as soon as the block has used ``seconds`` of processor time.

    Use this function only in the main thread.
    """

    def stop(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)
