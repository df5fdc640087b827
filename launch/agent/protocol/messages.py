"""What agents tell each other and the launcher: small records, one JSON line each.

*Events* travel to the lead and say what happened; *orders* travel from the lead to the
agent that owns a task. No order carries a command line: an agent only starts what its
own plan names.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Dict, List, Optional, Type, Union


@dataclass(frozen=True)
class Joined:
    """A host's agent is connected and ready, after it was not heard for ``silent_s`` seconds.

    ``incarnation`` names one life of it: another one is another agent.
    """

    host: str
    incarnation: str = ""
    silent_s: float = 0.0


@dataclass(frozen=True)
class Lost:
    """A host's agent has not been heard from for ``silent_s`` seconds."""

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
    """A task wrote its progress: the fields of ``cluster.outcome.Progress``."""

    task: str
    attempt: int
    progress: Dict[str, Any]


@dataclass(frozen=True)
class Measured:
    """What tasks of a host use of it: {task: {"attempt", and the fields of ``launch.agent.tasks.usage``}}."""

    tasks: Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class Signs:
    """Which tasks of a host are not well, and once which are again: {task: as ``launch.agent.tasks.health`` has it}."""

    tasks: Dict[str, Dict[str, Any]]


@dataclass(frozen=True)
class Exited:
    """A task's process group is gone.

    ``exit_code`` is negative for a signal and None where the process never started;
    ``outcome`` holds the fields of ``cluster.outcome.Outcome``, or None where the task
    wrote none. ``kind`` is one of ``launch.agent.supervision.incident.KINDS``, None where it ended well;
    ``lines`` are the last of its log; ``stack`` is where its threads were, where that was wanted.
    ``retry`` False: no further attempt would end otherwise.
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


@dataclass(frozen=True)
class StopRequested:
    """Somebody wants the run to end: the operator, or a lease that ran out."""

    reason: str


@dataclass(frozen=True)
class RestartRequested:
    """The operator wants new processes of these tasks."""

    tasks: List[str]


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
class Stop:
    """Order: end the process group of a task's attempt, with TERM and after ``grace_s`` with KILL.

    With ``stack`` it gets no TERM, but a moment to write where its threads are.
    """

    task: str
    grace_s: float
    attempt: int = 0
    stack: bool = False


@dataclass(frozen=True)
class Save:
    """Order: have the chief save now. A higher ``number`` than before is a new request."""

    task: str
    attempt: int
    number: int


@dataclass(frozen=True)
class Fetch:
    """The lead to a host that keeps copies: there is a checkpoint of this step, fetch it."""

    step: int


@dataclass(frozen=True)
class End:
    """Order: the run is over; leave, and leave nothing."""

    state: str


@dataclass(frozen=True)
class Ping:
    """Keeps a link alive. ``at`` is the sender's clock, and the answer to it has it as ``echo``."""

    at: float = 0.0
    echo: float = 0.0


Event = Union[
    Joined, Lost, Go, Started, Advanced, Measured, Signs, Exited, RestartRequested, StopRequested, KillRequested, Tick
]
Order = Union[Start, Stop, Save, End]
Message = Union[Event, Order, Fetch, Ping]

_KINDS: Dict[str, Type[Any]] = {
    kind.__name__: kind
    for kind in (
        Joined, Lost, Go, Started, Advanced, Measured, Signs, Exited, RestartRequested, StopRequested, KillRequested,
        Tick, Start, Stop, Save, Fetch, End, Ping,
    )
}  # fmt: skip


def encode(message: Message) -> bytes:
    """One JSON line, without its newline."""
    return json.dumps({"message": type(message).__name__, **asdict(message)}).encode()


def decode(line: bytes) -> Message:
    """The message of one JSON line.

    Raises:
      ValueError: the line is no message.
    """
    try:
        fields = json.loads(line.decode())
        message: Message = _KINDS[fields.pop("message")](**fields)
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"no message: {line[:200]!r}") from error
    return message
