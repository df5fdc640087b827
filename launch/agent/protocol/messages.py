"""The messages between agents and the launcher: small records, one JSON line each.

*Events* travel to the lead and report what happened; *orders* travel from the lead to the
agent that owns a task. No order carries a command line: an agent only starts what its
own plan names.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Type, Union

from cluster.protocol.save_request import NOW
from cluster.protocol.typed_json import Malformed, from_values


@dataclass(frozen=True)
class Joined:
    """A host's agent is connected and ready, after ``silent_s`` seconds of silence.

    ``incarnation`` names one life of the agent: another incarnation is another agent.
    """

    host: str
    incarnation: str = ""
    silent_s: float = 0.0


@dataclass(frozen=True)
class Lost:
    """The lead has received nothing from a host's agent for ``silent_s`` seconds."""

    host: str
    silent_s: float


@dataclass(frozen=True)
class Go:
    """The launcher has seen every agent ready: start the tasks."""


@dataclass(frozen=True)
class Started:
    """A task's process runs."""

    task: str
    attempt: int
    pid: int
    gpus: List[int]
    log: str


@dataclass(frozen=True)
class Advanced:
    """A task wrote its progress: the fields of ``cluster.protocol.outcome.Progress``."""

    task: str
    attempt: int
    progress: Dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """The use that tasks of a host make of its resources.

    ``tasks`` is {task: {"attempt", and the fields of ``launch.agent.tasks.task_reports``}}.
    """

    tasks: Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class Signs:
    """A host's tasks that are not well, and once those that are well again.

    ``tasks`` is {task: as ``launch.agent.tasks.task_reports`` has it}.
    """

    tasks: Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class GpuFailed:
    """A GPU of a host has failed, which these tasks there use. It is reported again and again."""

    tasks: List[str]
    what: str


@dataclass(frozen=True)
class Exited:
    """A task's process group is gone.

    ``exit_code`` is negative for a signal and None where the process never started.
    ``outcome`` holds the fields of ``cluster.protocol.outcome.Outcome``, or None where the task
    wrote none. ``kind`` is one of ``launch.agent.supervision.incident.KINDS``, None where the task ended well.
    ``lines`` are the last lines of the task's log. ``stack`` has the stacks of the task's threads, where the
    order to end asked for them. ``retry`` is False where no further attempt would end otherwise. ``error`` is the
    error that ended the process, "" where neither its outcome nor its log has one.
    """

    task: str
    attempt: int
    exit_code: Optional[int]
    cause: Optional[str] = None
    outcome: Optional[Dict[str, Any]] = None
    kind: Optional[str] = None
    lines: List[str] = field(default_factory=list)
    stack: Optional[str] = None
    retry: bool = True
    error: str = ""


@dataclass(frozen=True)
class Prepared:
    """The process for a task's next attempt waits for its place, or there will be none."""

    task: str
    attempt: int


@dataclass(frozen=True)
class StopRequested:
    """Somebody wants the run to end: the operator, or a lease that ran out."""

    reason: str


@dataclass(frozen=True)
class Leaving:
    """A host is to leave the run in order, for the reason ``why``: its agent was asked to end."""

    host: str
    why: str


@dataclass(frozen=True)
class RestartRequested:
    """The operator wants new processes of these tasks."""

    tasks: List[str]


@dataclass(frozen=True)
class DrainRequested:
    """The operator wants these tasks out of the run, or ``back`` in it."""

    tasks: List[str]
    back: bool = False


@dataclass(frozen=True)
class KillRequested:
    """Somebody wants every process of the run gone now."""

    reason: str


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class Start:
    """Order: start this task, in the cluster of its run.

    A formation of an elastic run has a ``cluster`` of its own, JSON text, in which the task has this ``index``.
    """

    task: str
    attempt: int
    cluster: Optional[str] = None
    index: Optional[int] = None


@dataclass(frozen=True)
class Prepare:
    """Order: start a process for a task's coming attempt, beside the one that runs; it waits for its ``Start``.

    ``cluster`` and ``index`` are those that the ``Start`` will have. A higher ``number`` than before is a new request.
    """

    task: str
    attempt: int
    cluster: str
    index: int
    number: int


@dataclass(frozen=True)
class Dismiss:
    """Order: end the process that waits since the ``Prepare`` of this number."""

    task: str
    number: int


@dataclass(frozen=True)
class Stop:
    """Order: end the process group of a task's attempt.

    The group gets TERM, and after ``grace_s`` KILL.
    With ``stack`` the group gets no TERM, but a moment to write the stacks of its threads.
    """

    task: str
    grace_s: float
    attempt: int = 0
    stack: bool = False


@dataclass(frozen=True)
class Save:
    """Order: have the chief save.

    A higher ``number`` than before is a new request. ``manner`` is one of ``cluster.protocol.save_request``.
    """

    task: str
    attempt: int
    number: int
    manner: str = NOW


@dataclass(frozen=True)
class Fetch:
    """The lead's request to a host that keeps copies: fetch the checkpoint of this step."""

    step: int


@dataclass(frozen=True)
class End:
    """Order: the run is over; leave, with nothing left behind."""

    state: str


@dataclass(frozen=True)
class Ping:
    """Keep a link alive.

    ``at`` is the sender's clock, and the answer returns that value as ``echo``.
    """

    at: float = 0.0
    echo: float = 0.0


Event = Union[
    Joined, Lost, Go, Started, Advanced, Measured, Signs, GpuFailed, Exited, Prepared, RestartRequested, DrainRequested,
    StopRequested, Leaving, KillRequested, Tick,
]  # fmt: skip
Order = Union[Start, Prepare, Dismiss, Stop, Save, End]
Message = Union[Event, Order, Fetch, Ping]

_EVERY: Any = Message
_KINDS: Dict[str, Type[Any]] = {kind.__name__: kind for kind in _EVERY.__args__}


def encode(message: Message) -> bytes:
    """Return a message as one JSON line, without its newline."""
    return json.dumps({"message": type(message).__name__, **vars(message)}).encode()


def decode(line: bytes) -> Message:
    """Return the message of one JSON line.

    Raises:
      ValueError: the line is no message.
    """
    try:
        fields = json.loads(line.decode())
        kind = _KINDS[fields.pop("message")]
        kind(**fields)  # raises for a field that is unknown or missing
        message: Message = from_values(kind, fields)
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError, Malformed) as error:
        raise ValueError(f"no message: {line[:200]!r}") from error
    return message
