"""Task logs from every host, each line with the task and host it is from."""

import os
from threading import Thread
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence

from cluster.spec.model import Spec, TaskSpec
from launch.agent.masking import masked
from launch.channel import Silence
from launch.errors import HostProblem, UsageError
from launch.fleet import Fleet

LOOK_S = 0.5


def select(spec: Spec, patterns: Sequence[str]) -> List[TaskSpec]:
    """The tasks that ``worker:1``, ``ps:*`` or ``gpu02`` mean; all without a pattern.

    Raises:
      UsageError: a pattern means no task.
    """
    chosen = []
    for pattern in patterns or ["*"]:
        found = [task for task in spec.tasks if _matches(task, pattern)]
        if not found:
            known = ", ".join(dict.fromkeys([*(task.name for task in spec.tasks), *spec.hosts]))
            raise UsageError(f"TASK: expected a task, ROLE:* or a host among {known[:300]}; found {pattern!r}")
        chosen += found
    return [task for task in spec.tasks if task in chosen]


def _matches(task: TaskSpec, pattern: str) -> bool:
    return pattern in ("*", task.name, f"{task.role}:*", task.host)


def print_logs(
    fleet: Fleet, tasks: Sequence[TaskSpec], say: Callable[[str], None], **options: Any
) -> List[HostProblem]:
    """Says every line of the tasks' logs, prefixed ``worker:1@gpu02``, until they end or a signal comes.

    ``follow``: go on with new lines while the run lives; ``tail``: only so many last lines of each task.

    Raises:
      BrokenPipeError: ``say`` did, since nobody reads any more.
    """
    problems: List[HostProblem] = []
    unread: List[BrokenPipeError] = []
    by_host: Dict[str, List[str]] = {}
    for task in tasks:
        by_host.setdefault(task.host, []).append(task.name)
    readers = [
        Thread(target=_copy, args=(fleet, host, {**options, "tasks": names}, say, problems, unread), daemon=True)
        for host, names in by_host.items()
    ]
    # Without follow one after the other, so that a host's lines stay together.
    for reader in readers:
        reader.start()
        if not options.get("follow"):
            _wait(fleet, [reader], unread)
    _wait(fleet, readers, unread)
    if unread:
        raise unread[0]
    return problems


def _wait(fleet: Fleet, readers: List[Thread], unread: List[BrokenPipeError]) -> None:
    while any(reader.is_alive() for reader in readers) and not fleet.interrupts.received and not unread:
        readers[0].join(LOOK_S)
        readers = [reader for reader in readers if reader.is_alive()] or readers


def _copy(
    fleet: Fleet,
    host: str,
    options: Mapping[str, Any],
    say: Callable[[str], None],
    problems: List[HostProblem],
    unread: List[BrokenPipeError],
) -> None:
    try:
        for line in _lines(fleet, host, options):
            say(line)
    except HostProblem as problem:
        problems.append(problem)
    except BrokenPipeError as error:
        unread.append(error)


def _lines(fleet: Fleet, host: str, options: Mapping[str, Any]) -> Iterator[str]:
    channel = fleet.contact(host, "logs", fleet.request(host, **options))
    secrets = [os.environ[name] for name in fleet.spec.secrets if name in os.environ]
    try:
        while not fleet.interrupts.received:
            try:
                line = channel.hear(LOOK_S)
            except Silence:
                continue
            except OSError as error:
                raise HostProblem(host, f"the connection broke: {error}") from error
            if line is None:
                return
            if "error" in line:
                raise HostProblem(host, line["error"])
            yield f"{line['task']}@{host} {masked(line['line'], secrets)}"
    finally:
        channel.close()
