"""The messages between agents and the launcher: small records, one JSON line each.

*Events* go to the lead and report changes; *orders* go from the lead to the agent that owns a task. No order contains a
command line: an agent starts only the programs in its own plan.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Type, Union

from cluster.protocol.save_request import NOW
from cluster.protocol.typed_json import Malformed, from_values

PREPARE_S = 150.0  # for a prepared process to load: the lead then waits no longer, and an agent starts a new process


@dataclass(frozen=True)
class Joined:
    """Event: a host's agent is connected and ready, after ``silent_s`` seconds of silence.

    ``incarnation`` is a random text: a restarted agent has another one.
    """

    host: str
    incarnation: str = ""
    silent_s: float = 0.0


@dataclass(frozen=True)
class Lost:
    """Event: a host is lost; the lead has received nothing from its agent for ``silent_s`` seconds."""

    host: str
    silent_s: float


@dataclass(frozen=True)
class Go:
    """Event: the launcher has seen that every agent is ready, so the tasks may start."""


@dataclass(frozen=True)
class Started:
    """Event: the process of a task's attempt has started."""

    task: str
    attempt: int
    pid: int
    gpus: List[int]
    log: str


@dataclass(frozen=True)
class Advanced:
    """Event: a task wrote its progress, with the fields of ``cluster.protocol.outcome.Progress``."""

    task: str
    attempt: int
    progress: Dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """Event: a host has measured the resources that its tasks use.

    ``tasks`` is {task: {"attempt", and the fields of ``launch.agent.tasks.task_reports``}}.
    """

    tasks: Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class Signs:
    """Event: the signs of life of a host's tasks that may hang, have recovered since the last report, or start.

    ``tasks`` is {task: signs}, with the signs as ``launch.agent.tasks.task_reports`` returns them.
    """

    tasks: Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class GpuFailed:
    """Event: a GPU of a host has failed, as ``what`` describes; ``tasks`` use it. The host repeats this event."""

    tasks: List[str]
    what: str


@dataclass(frozen=True)
class Exited:
    """Event: a task's process group has ended.

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
    """Event: the process for a task's next attempt waits for the order ``Start``, or could not be prepared."""

    task: str
    attempt: int


@dataclass(frozen=True)
class StopRequested:
    """Event: the operator, or an expired lease, requests the end of the run."""

    reason: str


@dataclass(frozen=True)
class Leaving:
    """Event: a host must leave the run in an orderly way, for the reason ``why``: its agent was asked to end."""

    host: str
    why: str


@dataclass(frozen=True)
class RestartRequested:
    """Event: an operator requests a restart of these tasks."""

    tasks: List[str]


@dataclass(frozen=True)
class DrainRequested:
    """Event: an operator requests to drain these tasks (train on without them), or to take them ``back``."""

    tasks: List[str]
    back: bool = False


@dataclass(frozen=True)
class KillRequested:
    """Event: a request to kill every process of the run now."""

    reason: str


@dataclass(frozen=True)
class Tick:
    """Event: time has passed, without any other event."""


@dataclass(frozen=True)
class Start:
    """Order: start this task, in the cluster of its run.

    An elastic run may train in a changed ``cluster``, given as JSON text; the task has this ``index`` in it.
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

    The agent sends SIGTERM to the group, and SIGKILL after ``grace_s`` seconds. With ``stack`` it sends no SIGTERM, but
    gives the group a moment to write the stacks of its threads.
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
