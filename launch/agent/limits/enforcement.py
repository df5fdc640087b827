"""The enforcement of tasks' limits: which limits this host can enforce, and how a process sets its limits.

A process sets its own limits before its program begins; its children inherit them. ``Terms`` also has the limits that
the host cannot enforce.

A container of apptainer inherits every limit. Podman and docker run a container outside the agent's processes and
control groups. There the agent watches memory itself, and the runtime limits open files.
"""

import contextlib
import os
import resource
from dataclasses import dataclass, field, replace
from typing import Callable, Iterable, Iterator, Mapping, Optional, Set, Tuple

from cluster.protocol.settings import GIB, Limits
from launch.agent.containers.command import RunContainers
from launch.agent.limits import control_groups, processors
from launch.agent.limits.control_groups import Group, GroupPlace
from launch.agent.linux.procfs import memory_for_us
from launch.agent.wire.run_request import TaskRequest

REFUSED = "cannot set the limits of this task: "
_NOT_INHERITED = ("processors", "numa_node", "nice")


@dataclass(frozen=True)
class Enforcement:
    """The limits of one attempt of a task, with the processors and the control group that enforce them.

    Attributes:
      processors: the processors that the task may use; () for all.
      group: the control group that the process enters; None where no group limits its memory.
    """

    limits: Limits
    processors: Tuple[int, ...] = ()
    group: Optional[Group] = None

    def set_all(self) -> None:
        """Set every limit of this process. Raises OSError; the text names the limit."""
        limits = self.limits
        if self.group is not None:
            with _naming("memory_gib"):
                self.group.enter()
        if self.processors:
            with _naming("processors"):
                os.sched_setaffinity(0, self.processors)
        if limits.numa_node is not None:
            with _naming("numa_node"):
                processors.bind_memory(limits.numa_node)
        if limits.nofile is not None:
            with _naming("nofile"):
                _set_nofile(limits.nofile)
        if limits.nice is not None:
            with _naming("nice"):
                os.setpriority(os.PRIO_PROCESS, 0, limits.nice)

    def before_program(self) -> None:
        """Set every limit of this process; if that fails, end this process with the reason in its log."""
        try:
            self.set_all()
        except OSError as error:
            os.write(2, f"{REFUSED}{error}\n".encode())
            os._exit(1)


@contextlib.contextmanager
def _naming(key: str) -> Iterator[None]:
    """Raise an OSError of this block again, with the key of the limit in its text."""
    try:
        yield
    except OSError as error:
        raise OSError(f"limits.{key}: {error.strerror or error}") from error


def _set_nofile(count: int) -> None:
    """Set the soft and the hard limit of open files. Raises OSError."""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    except ValueError as error:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        raise OSError(f"expected at most {hard}, the hard limit of this user, found {count}") from error


def refusal_of(enforcement: Enforcement) -> Optional[str]:
    """Return the reason why a process of this user cannot set these limits; None where it can.

    The function tries the limits in a child of this process.
    """
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.write(sink, _reason(enforcement).encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as reader:
        reason = reader.read()
    os.waitpid(child, 0)
    return reason or None


def _reason(enforcement: Enforcement) -> str:
    try:
        enforcement.set_all()
    except OSError as error:
        return str(error)
    return ""


WATCHED = "memory_gib under limits: once a second, the agent kills tasks above it; the kernel limits no task here"


@dataclass(frozen=True)
class Terms:
    """The limits of one host's tasks, and how far the host can enforce them.

    Attributes:
      limits: the limits of each task that has limits.
      processors: the processors of each task that may use only these processors.
      place: the parent of the tasks' control groups; None where the agent watches memory, or no task limits memory.
      problems: a text for each limit that this host cannot enforce.
      notes: a text for each limit that the agent enforces, because the kernel cannot.
    """

    limits: Mapping[str, Limits] = field(default_factory=dict)
    processors: Mapping[str, Tuple[int, ...]] = field(default_factory=dict)
    place: Optional[GroupPlace] = None
    problems: Tuple[str, ...] = ()
    notes: Tuple[str, ...] = ()

    def enforcement(self, task: str, group: Optional[Group]) -> Enforcement:
        """Return the limits of a task, with ``group`` as the control group of its attempt."""
        return Enforcement(self.limits.get(task, Limits()), self.processors.get(task, ()), group)


@dataclass(frozen=True)
class LimitedHost:
    """The resources of a host on which the limits of its tasks depend; tests replace them."""

    memory_bytes: int
    usable: Set[int]
    nodes: Mapping[int, Set[int]]
    find_place: Callable[[], GroupPlace] = control_groups.find
    refusal: Callable[[Enforcement], Optional[str]] = refusal_of


def this_host() -> LimitedHost:
    """Return this host's memory, usable processors and NUMA nodes."""
    return LimitedHost(memory_for_us(), os.sched_getaffinity(0), processors.numa_nodes())


def wishes(tasks: Iterable[TaskRequest]) -> Mapping[str, Limits]:
    """Return {task: limits} for the tasks that have limits."""
    return {task.name: task.limits for task in tasks if task.limits is not None}


def agree(
    limits: Mapping[str, Limits],
    take: Callable[[int], bool],
    host: LimitedHost,
    container: Optional[RunContainers] = None,
) -> Terms:
    """Return which of the tasks' ``limits`` the ``host`` can enforce, and how; reserve their processors.

    Args:
      take: reserves a processor, and returns False where another run has it.
      container: the containers of the tasks; None where the tasks run on the host itself.
    """
    if not limits:
        return Terms()
    runtime = container.runtime if container is not None and container.is_named else None
    place, notes = _place(limits, host, runtime)
    problems = list(_too_much_memory(limits, host.memory_bytes))
    try:
        given: Mapping[str, Tuple[int, ...]] = processors.give(limits, host.usable, host.nodes, take)
    except processors.ImpossibleLimit as error:
        given = {}
        problems.append(str(error))
    terms = Terms(limits, given, place, (), notes)
    return replace(terms, problems=(*problems, *_refused(terms, host, runtime)))


def would_agree(limits: Mapping[str, Limits], container: Optional[RunContainers]) -> Terms:
    """Return what ``agree`` would return on this host now, without reserving a processor."""
    taken = processors.booked()
    return agree(limits, lambda processor: processor not in taken, this_host(), container)


def _place(
    limits: Mapping[str, Limits], host: LimitedHost, runtime: Optional[str]
) -> Tuple[Optional[GroupPlace], Tuple[str, ...]]:
    if all(each.memory_gib is None for each in limits.values()):
        return None, ()
    if runtime is not None:
        return None, (f"{WATCHED} ({runtime} has its own control groups)",)
    try:
        return host.find_place(), ()
    except OSError as error:
        return None, (f"{WATCHED} ({error})",)


def _too_much_memory(limits: Mapping[str, Limits], memory_bytes: int) -> Iterator[str]:
    """Yield a problem for each limit that no task can reach, since the host has less memory."""
    for task, each in limits.items():
        if each.memory_gib is not None and (each.memory_bytes or 0) > memory_bytes:
            has = f"{memory_bytes / GIB:.1f} GiB that this host has"
            yield f"limits.memory_gib of {task}: expected at most the {has}, found {each.memory_gib:g}"


def _refused(terms: Terms, host: LimitedHost, runtime: Optional[str]) -> Iterator[str]:
    """Yield a problem for each limit that a process of this user cannot have; try equal limits once."""
    first = {limits: task for task, limits in reversed(list(terms.limits.items()))}
    for limits, task in first.items():
        if limits.numa_node is not None and not terms.processors:
            continue  # the node does not exist
        reason = _not_inherited(limits, runtime) or host.refusal(Enforcement(limits))
        if reason is not None:
            yield f"{task}: {reason}"


def _not_inherited(limits: Limits, runtime: Optional[str]) -> Optional[str]:
    """Return the reason why tasks in containers of a runtime cannot have some limits; None where they can."""
    given = [key for key in _NOT_INHERITED if runtime is not None and getattr(limits, key) is not None]
    if not given:
        return None
    names = ", ".join(f"limits.{key}" for key in given)
    mend = f"use {runtime}'s own options in container.args"
    return f"{names}: expected apptainer, whose containers inherit limits, found {runtime}; {mend}"
