"""Read task logs from every host by time, each line with its task and host.

The reader has two modes. *In order* reads existing lines: each host sends its lines by time, and the launcher holds one
line of each host. *As they come* reads the lines that the tasks print from now on.
"""

import heapq
import math
import os
import time
from queue import Empty, Queue
from threading import Thread
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, TypeVar

from cluster.spec.model import TaskSpec
from launch.agent.text import mask
from launch.agent.wire.verb_requests import LogsRequest
from launch.errors import CannotStart, HostProblem, ProblemKind, UsageError
from launch.fleet import AnyTask, Fleet, names_by_host
from launch.history import locate, status_in
from launch.hosts.channel import Silence
from launch.hosts.conversation import Conversation
from launch.logs.folding import Folded, LogLine, Window, shown
from launch.status.run import RunStatus
from launch.status.task import TaskStatus
from launch.view import run_end

T = TypeVar("T", TaskSpec, TaskStatus, AnyTask)
LOOK_S = 0.5
HURRY_S = 0.05  # to wait for each host, once the deadline has passed
ARRIVED_S = 10.0  # to read lines that have arrived: they are read by time, not host by host
TOGETHER_S = 3.0  # equal lines within this time are printed as one
WAIT_S = 1.0  # the same for followed lines, which must appear soon
AHEAD = 1000  # lines that hosts may send ahead of the reader
TAIL = 15  # lines of the culprit's log
LONGEST = 300  # characters of each of these lines


def select(tasks: Sequence[T], patterns: Sequence[str]) -> List[T]:
    """Return the tasks that match a pattern such as ``worker:1``, ``ps:*`` or ``gpu02``; all without a pattern.

    Raises:
      UsageError: a pattern matches no task.
    """
    meant = patterns or ["*"]
    for pattern in meant:
        if not any(_matches(task, pattern) for task in tasks):
            known = ", ".join(dict.fromkeys([*(task.name for task in tasks), *(task.host for task in tasks)]))
            raise UsageError(f"TASK: expected a task, ROLE:* or a host among {known[:300]}; found {pattern!r}")
    return [task for task in tasks if any(_matches(task, pattern) for pattern in meant)]


def _matches(task: AnyTask, pattern: str) -> bool:
    return pattern in ("*", task.name, f"{task.role}:*", task.host)


def print_logs(
    fleet: Fleet,
    tasks: Sequence[AnyTask],
    say: Callable[[str], None],
    follow: bool = False,
    raw: bool = False,
    times: bool = False,
    since: Optional[float] = None,
    until: Optional[float] = None,
    tail: Optional[int] = None,
    patience_s: float = math.inf,
) -> List[HostProblem]:
    """Print every line of the tasks' logs, until the logs end or a signal comes.

    Args:
      follow: continue with new lines while the run lives.
      raw: print every line of each task; otherwise equal lines of many tasks become one line with a count.
      times: print the time of day in front of each line.
      since, until: times of day in seconds; print only the lines between them.
      tail: the number of last lines of each task to print; None for all lines.
      patience_s: seconds after which a host that has not sent all its lines counts as a problem.

    Raises:
      BrokenPipeError: ``say`` raised it, because the reader of the output has gone.
    """
    problems: List[HostProblem] = []
    window = Window(0.0 if raw else WAIT_S if follow else TOGETHER_S)
    requests = {
        host: LogsRequest(fleet.reference(host), names, follow, since, until, tail)
        for host, names in names_by_host(tasks).items()
    }
    readers = _readers(fleet, requests, problems, patience_s)
    for folded in _folded(window, _as_they_come(fleet, readers) if follow else _in_order(readers)):
        if fleet.interrupts.received:
            break
        say(shown(folded, times))
    return problems


def _folded(window: Window, lines: Iterable[Tuple[Optional[LogLine], float]]) -> Iterator[Folded]:
    for line, now in lines:
        if line is not None:
            window.take(line, now)
        yield from window.due(now)
    yield from window.rest()


def _readers(
    fleet: Fleet, requests: Mapping[str, LogsRequest], problems: List[HostProblem], patience_s: float
) -> List[Iterator[LogLine]]:
    """Return a reader of the tasks' lines for each host that can be reached."""
    named = [host for host in requests if host in fleet.hosts]
    with fleet.asking():
        conversations, missed = fleet.each(
            lambda host: fleet.contact(host.name, "logs", requests[host.name]), named, interruptible=False
        )
    problems += [*missed, *(_unnamed(fleet, host) for host in requests if host not in named)]
    until = time.monotonic() + patience_s
    return [_lines(fleet, conversation, problems, until) for conversation in conversations.values()]


def _unnamed(fleet: Fleet, host: str) -> HostProblem:
    """Return the problem of a host of an earlier run that the file no longer names."""
    what = f"{fleet.spec.path} does not name this host, so its lines are missing"
    return HostProblem(host, ProblemKind.UNNAMED, what, advice="add it again, and leave out --include and --exclude")


def _in_order(readers: Sequence[Iterator[LogLine]]) -> Iterator[Tuple[LogLine, float]]:
    """Yield the lines of all hosts by time."""
    for line in heapq.merge(*readers, key=lambda line: line.time):
        yield line, line.time


def _as_they_come(fleet: Fleet, readers: Sequence[Iterator[LogLine]]) -> Iterator[Tuple[Optional[LogLine], float]]:
    """Yield the lines of all hosts with their arrival times; None after a while without a line."""
    came: Queue[Optional[LogLine]] = Queue(AHEAD)
    for reader in readers:
        Thread(target=_hand_over, args=(reader, came), daemon=True).start()
    reading = len(readers)
    while reading and not fleet.interrupts.received:
        try:
            line = came.get(timeout=WAIT_S / 2)
            reading -= line is None
        except Empty:
            line = None
        yield line, time.monotonic()


def _hand_over(reader: Iterator[LogLine], came: "Queue[Optional[LogLine]]") -> None:
    for line in reader:
        came.put(line)
    came.put(None)


def _lines(fleet: Fleet, conversation: Conversation, problems: List[HostProblem], until: float) -> Iterator[LogLine]:
    """Yield the lines of one host; add a problem if the connection breaks, or the end has not come at ``until``."""
    secrets = [os.environ[name] for name in fleet.spec.secrets if name in os.environ]
    attempts: Dict[str, int] = {}
    try:
        for answer in _answers(fleet, conversation, until):
            moment, task, attempt = float(answer["time"]), answer["task"], answer.get("attempt", 0)
            if attempt > attempts.setdefault(task, attempt):  # a log that becomes readable late may be an earlier one
                attempts[task] = attempt
                yield LogLine(moment, task, conversation.host, f"-- attempt_{attempt}.log --")
            yield LogLine(moment, task, conversation.host, mask(answer["line"], secrets))
    except HostProblem as problem:
        problems.append(problem)
    finally:
        conversation.close()


def _answers(fleet: Fleet, conversation: Conversation, until: float) -> Iterator[Dict[str, Any]]:
    """Yield the answers of a host until its end or a signal.

    Raises HostProblem when the connection breaks, and when the end has not come at ``until``.
    """
    while not fleet.interrupts.received:
        try:
            answer = conversation.receive(LOOK_S if time.monotonic() < until else HURRY_S)
        except Silence:
            _must_be_before(until, conversation.host, "silence")
            continue
        if answer is None:
            return
        _must_be_before(until + ARRIVED_S, conversation.host, "further lines")
        yield answer


def _must_be_before(until: float, host: str, found: str) -> None:
    if time.monotonic() >= until:
        raise HostProblem(host, ProblemKind.SLOW, f"expected its logs to end before the deadline, found {found}")


def print_log_of_culprit(fleet: Fleet, status: RunStatus, say: Callable[[str], None]) -> None:
    """Print the last lines of the log of the task that made the run fail, from the attempt that failed first.

    If the status has traceback frames in the author's own files, the function instead prints these frames and the log's
    path.
    """
    task = run_end.culprit(status)
    first = None if task is None else run_end.first_failure(status, task)
    explained = None if task is None else run_end.author_frames(status)
    if explained is not None:
        lines = (explained.stack or "").splitlines()
        for line in [f"{explained.title} failed in these lines of the job:", *lines] if lines else []:
            say(line[:LONGEST])
        say(f"the whole traceback is in {fleet.path_on(explained.host, explained.log)}")
    elif first is not None:
        say(f"last lines of {fleet.path_on(first.host, first.log)}")
        for line in first.lines:
            say(f"  {line}")
    elif task is not None:
        say(f"last lines of {fleet.path_on(task.host, task.log)}")
        print_logs(fleet, [task], lambda line: say(f"  {line}"[:LONGEST]), raw=True, tail=TAIL)


def print_first_cause(fleet: Fleet, tasks: Sequence[AnyTask], say: Callable[[str], None]) -> None:
    """Print the cause of a failed run, and the last log lines of the task that failed first.

    The function prints nothing if the run has not failed, or that task is not one of ``tasks``.
    """
    try:
        answer = fleet.ask_lead("status", fleet.reference(fleet.lead))
        status = status_in(fleet.lead, answer)
        if status is None and answer["status"] is not None:  # from a host that does not lead the run
            status = locate(fleet).status
    except (CannotStart, HostProblem, UsageError):
        return
    if status is None or status.state != "failed":
        return
    task = run_end.culprit(status)
    if task is not None and any(each.name == task.name for each in tasks):
        say(f"first cause: {status.cause}")
        print_log_of_culprit(fleet, status, say)
        say("every line, by time:")
