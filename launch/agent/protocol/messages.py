"""The messages between agents and the launcher: small records, one JSON line each.

*Events* go to the lead and report changes; *orders* go from the lead to the agent that owns a task. No order contains a
command line: an agent starts only the programs in its own plan.
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
    """A task wrote its progress, with the fields of ``cluster.protocol.outcome.Progress``."""

    task: str
    attempt: int
    progress: Dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """The resources that a host's tasks use.

    ``tasks`` is {task: {"attempt", and the fields of ``launch.agent.tasks.task_reports``}}.
    """

    tasks: Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class Signs:
    """The signs of life of a host's tasks that are unwell, that have recovered since the last report, or that start.

    ``tasks`` is {task: signs}, with the signs as ``launch.agent.tasks.task_reports`` returns them.
    """

    tasks: Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class GpuFailed:
    """A GPU of a host has failed, as ``what`` describes; ``tasks`` use this GPU. The host repeats this event."""

    tasks: List[str]
    what: str


@dataclass(frozen=True)
class Exited:
    """A task's process group has ended.

    ``exit_code`` is negative for a signal and None where the process never started. ``outcome`` holds the fields of
    ``cluster.protocol.outcome.Outcome``, or None where the task wrote none. ``kind`` is one of
    ``launch.agent.supervision.incident.KINDS``, None where the task ended well. ``lines`` are the last lines of the
    task's log. ``stack`` has the stacks of the task's threads, where the order to end asked for them. ``retry`` is
    False where every further attempt would fail in the same way. ``error`` is the error that ended the process, ""
    where neither the outcome nor the log of the process has an error.
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
    """The process for a task's next attempt waits for the order ``Start``, or could not be prepared."""

    task: str
    attempt: int


@dataclass(frozen=True)
class StopRequested:
    """A request to end the run, by the operator or by an expired lease."""

    reason: str


@dataclass(frozen=True)
class Leaving:
    """A host must leave the run in an orderly way, for the reason ``why``: its agent was asked to end."""

    host: str
    why: str


@dataclass(frozen=True)
class RestartRequested:
    """An operator's request to restart these tasks."""

    tasks: List[str]


@dataclass(frozen=True)
class DrainRequested:
    """An operator's request to drain these tasks, or to take these tasks ``back``."""

    tasks: List[str]
    back: bool = False


@dataclass(frozen=True)
class KillRequested:
    """A request to kill every process of the run now."""

    reason: str


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class Start:
    """Order: start this task, in the cluster of its run.

    A formation of an elastic run has its own ``cluster``, as JSON text; the task has this ``index`` in the cluster.
    """

    task: str
    attempt: int
    cluster: Optional[str] = None
    index: Optional[int] = None


@dataclass(frozen=True)
class Prepare:
    """Order: start a second process for a task's next attempt; the process waits for its ``Start``.

    ``cluster`` and ``index`` are the values that the ``Start`` will have. A higher ``number`` than before is a new
    request.
    """

    task: str
    attempt: int
    cluster: str
    index: int
    number: int


@dataclass(frozen=True)
class Dismiss:
    """Order: end the process that the ``Prepare`` of this number has started."""

    task: str
    number: int


@dataclass(frozen=True)
class Stop:
    """Order: end the process group of a task's attempt.

    The agent sends the group TERM, and after ``grace_s`` KILL. With ``stack`` the agent sends no TERM, but gives the
    group a moment to write the stacks of its threads.
    """

    task: str
    grace_s: float
    attempt: int = 0
    stack: bool = False


@dataclass(frozen=True)
class Save:
    """Order: let the chief save a checkpoint.

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
    """Order: the run is over, with ``state`` as its result; clean up this host and leave."""

    state: str


@dataclass(frozen=True)
class Ping:
    """Keep a link alive.

    ``at`` is the time on the sender's clock; the other side answers with a ``Ping`` that has this time as ``echo``.
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
        kind(**fields)  # raises TypeError for an unknown or missing field
        message: Message = from_values(kind, fields)
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError, Malformed) as error:
        raise ValueError(f"no message: {line[:200]!r}") from error
    return message
