"""The limits of one process, which it sets for itself before its program begins; its children inherit them."""

import contextlib
import os
import resource
from dataclasses import dataclass
from typing import Iterator, Optional, Tuple

from cluster.protocol.limits import Limits
from launch.agent.limits import numa
from launch.agent.limits.control_groups import Group

REFUSED = "cannot set the limits of this task: "


@dataclass(frozen=True)
class Enforcement:
    """The enforcement of one attempt's limits.

    Attributes:
      processors: those that the task may use; () for all.
      group: the group that the process enters; None where no group limits its memory.
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
                numa.bind_memory(limits.numa_node)
        if limits.nofile is not None:
            with _naming("nofile"):
                _set_nofile(limits.nofile)
        if limits.nice is not None:
            with _naming("nice"):
                os.setpriority(os.PRIO_PROCESS, 0, limits.nice)

    def before_program(self) -> None:
        """Set every limit of this process, or end it with the reason in its log."""
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
    """Set the limit of open files, also for the limit that a process may raise its own to. Raises OSError."""
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
    except ValueError as error:
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        raise OSError(f"expected at most {hard}, the hard limit of this user, found {count}") from error


def refusal(enforcement: Enforcement) -> Optional[str]:
    """Return the reason why a process of this user cannot have these limits; None where it can.

    A child of this process tries them.
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
