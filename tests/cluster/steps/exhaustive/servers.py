"""The state of the parameter servers of a synchronous run, and each operation on it as one event.

A *value* of a variable is the list of the steps that were applied to it, so two values are equal only if the variable
is. A gradient knows the values with which it was computed. So a step can be judged when it is applied.
"""

from typing import Any, Dict, NamedTuple, Optional, Tuple

CLOSED = -1
Value = Tuple[int, ...]  # the number of the restore, and then each step that was applied


class Gradient(NamedTuple):
    """A gradient in an accumulator: who gave it, its stamp, and the values with which it was computed."""

    worker: int
    stamp: int
    values: Tuple[Value, ...]


class Ps(NamedTuple):
    """One push on its server: a variable with its accumulator; None and nothing after its start.

    Attributes:
      born: the number of its server's starts.
      stamp: the accumulator's own step; an older gradient is dropped.
      applied: the stamp after the last step that was applied; ``given``: that of each worker's last gradient.
      outbox: the value as it travels in an overlapped step.
      turns: each worker's queue of tokens for all pushes of the server, at the first of these.
    """

    born: int = 0
    value: Optional[Value] = None
    stamp: int = 0
    gradients: Tuple[Gradient, ...] = ()
    applied: Optional[int] = None
    given: Optional[Tuple[int, ...]] = None
    outbox: Optional[Value] = None
    turns: Tuple[Tuple[int, ...], ...] = ()


class Servers(NamedTuple):
    """All servers. What ``ps:0`` has beside its variable: the step, the era, counts of gradients, and token queues."""

    ps: Tuple[Ps, ...]
    step: Optional[int] = None
    era: Optional[int] = None
    counts: Optional[Tuple[int, ...]] = None
    tokens: Tuple[Tuple[int, ...], ...] = ()
    restores: int = 0

    def on(self, index: int, **changes: Any) -> "Servers":
        """Return the servers with changes of one."""
        return self._replace(ps=_with(self.ps, index, self.ps[index]._replace(**changes)))


def fresh(workers: int, ps: int) -> Servers:
    """Return servers that have just started."""
    return Servers((Ps(turns=((),) * workers),) * ps, tokens=((),) * workers)


class Memory(NamedTuple):
    """What a worker has beside its own code: its variables' values, those that have come meanwhile, and a thread."""

    born: Tuple[int, ...]
    step: int = 0
    era: int = 0
    values: Tuple[Value, ...] = ()
    came: Tuple[Tuple[int, Tuple[Value, ...]], ...] = ()
    to_finish: int = 0  # steps that the chief's ``Finisher`` has still to apply


class Op(NamedTuple):
    """One operation of a session: its name and arguments, its server, and the operations that come before it."""

    name: str
    server: Optional[int] = 0
    args: Tuple[Any, ...] = ()
    after: Tuple[int, ...] = ()


class Of(NamedTuple):
    """The result of an earlier operation of the same call, as an argument."""

    place: int


class Wrong(Exception):
    """A promise that the servers' state breaks."""


class Lost(Exception):
    """The server has started again since the session began."""


class Event(NamedTuple):
    """One operation, as it happens: who runs it, on what, and the results of the operations before it."""

    servers: Servers
    memory: Memory
    worker: int
    op: Op
    results: Tuple[Any, ...]
    has_lost: bool = False  # a task has died

    @property
    def ps(self) -> Ps:
        """Return the state of the operation's server."""
        return self.servers.ps[self.op.server or 0]

    def on_ps(self, result: Any = 0, **changes: Any) -> "Outcome":
        """Return the outcome that changes the operation's server."""
        return self.servers.on(self.op.server or 0, **changes), self.memory, result

    def on_all(self, result: Any = 0, **changes: Any) -> "Outcome":
        """Return the outcome that changes what ``ps:0`` has for all."""
        return self.servers._replace(**changes), self.memory, result

    def here(self, result: Any = 0, **changes: Any) -> "Outcome":
        """Return the outcome that changes the worker's own memory."""
        return self.servers, self.memory._replace(**changes), result


Outcome = Tuple[Servers, Memory, Any]


def happen(event: Event) -> Optional[Outcome]:
    """Return what one operation does; None where it has to wait.

    Raises:
      Lost: the session has to begin again.
      Wrong: a promise is broken.
    """
    server = event.op.server
    if server is not None and event.servers.ps[server].born != event.memory.born[server]:
        raise Lost
    if event.op.name == "apply":
        _judge(event)
    outcome: Optional[Outcome] = OPERATIONS[event.op.name](event)
    return outcome


def _judge(event: Event) -> None:
    """Refuse a step that is not the sum of one gradient of each worker, all of the values that it changes.

    A gradient that was given instead of a dead worker's may know a part of its own step.
    """
    taken = event.results[event.op.args[0]]
    workers = sorted(gradient.worker for gradient in taken)
    if len(set(workers)) < len(workers) or len(workers) < event.op.args[1]:
        raise Wrong(f"a step on ps:{event.op.server} has gradients of workers {workers}")
    now, era = event.servers.step, event.servers.era
    if era is not None and now is not None and {gradient.stamp for gradient in taken} != {era + now}:
        raise Wrong(f"step {now} on ps:{event.op.server} has a gradient of another step")
    if _before(event.ps.value, now) != event.ps.value:
        raise Wrong(f"step {now} is applied twice on ps:{event.op.server}")
    for gradient in taken:
        for ps, value in zip(event.servers.ps, gradient.values):
            before, known = _before(ps.value, now), _before(value, now)
            if known != value and not event.has_lost:
                raise Wrong(f"worker {gradient.worker} computed step {now} with {value}, which has it already")
            if before is not None and before[0] == value[0] and known != before:
                raise Wrong(f"worker {gradient.worker} computed step {now} with {value}, and {before} is changed")


def _before(value: Optional[Value], step: Optional[int]) -> Optional[Value]:
    return value[:-1] if value and value[-1] == step else value


def _push(event: Event) -> Outcome:
    """``apply_grad`` of an accumulator, and the note that follows it on the server."""
    memory = event.memory
    gradient = Gradient(event.worker, memory.step + memory.era, memory.values)
    before = event.ps.given or ()
    given = _with(before, event.worker, max(before[event.worker], gradient.stamp + 1))
    if gradient.stamp < event.ps.stamp:
        return event.on_ps(given=given)
    return event.on_ps(given=given, gradients=tuple(sorted((*event.ps.gradients, gradient))))


def _take(event: Event) -> Optional[Outcome]:
    """``take_grad`` of an accumulator, which waits for so many gradients and takes all."""
    if len(event.ps.gradients) < event.op.args[0]:
        return None
    return event.on_ps(event.ps.gradients, gradients=(), stamp=event.ps.stamp + 1)


def _apply(event: Event) -> Outcome:
    return event.on_ps(value=(*(event.ps.value or ()), event.servers.step or 0))


def _take_newest(event: Event) -> Optional[Outcome]:
    tokens = event.servers.tokens[event.worker]
    if not tokens:
        return None
    servers = event.servers._replace(tokens=_with(event.servers.tokens, event.worker, ()))
    return servers, event.memory._replace(step=max(tokens[-1], event.memory.step)), tokens[-1]


def _send(event: Event) -> Outcome:
    """Put a token into one worker's queue."""
    worker, given = event.op.args
    token = event.results[given.place] if isinstance(given, Of) else given
    tokens = event.servers.tokens
    return event.on_all(tokens=_with(tokens, worker, (*tokens[worker], token)))


def _count(event: Event) -> Outcome:
    """Count a gradient: by its stamp, or one more."""
    counts, (is_strict,) = event.servers.counts or (), event.op.args
    before, stamp = counts[event.worker], event.memory.step + event.memory.era
    return event.on_all(counts=_with(counts, event.worker, max(before, stamp + 1) if is_strict else before + 1))


def _came(event: Event) -> Outcome:
    """Keep values for the next step: ``args`` are the operations that have read them and the token."""
    token, *reads = (event.results[place] for place in event.op.args)
    return event.here(came=(*event.memory.came, (token + event.memory.era, tuple(reads))))


def _came_next(event: Event) -> Outcome:
    """Keep values for the next step, by the stamp of the step in which they came."""
    stamp, *reads = (event.results[place] for place in event.op.args)
    return event.here(came=(*event.memory.came, (stamp + 1, tuple(reads))))


def _turn(event: Event) -> Optional[Outcome]:
    """Take the next token of a server."""
    tokens = event.ps.turns[event.worker]
    return event.on_ps(tokens[0], turns=_with(event.ps.turns, event.worker, tokens[1:])) if tokens else None


def _put(event: Event, tokens: Tuple[int, ...]) -> Outcome:
    return event.on_ps(turns=tuple((*turns, *tokens) for turns in event.ps.turns))


def _load(event: Event) -> Optional[Outcome]:
    if not event.memory.came:
        return None
    (stamp, values), *rest = event.memory.came
    return event.here(stamp, values=values, came=tuple(rest))


def _restore(event: Event) -> Outcome:
    """Begin to give every variable the value of the checkpoint, that of step 0."""
    return event.on_all(step=0, restores=event.servers.restores + 1)


OPERATIONS: Dict[str, Any] = {
    "push": _push,
    "take": _take,
    "apply": _apply,
    "take newest": _take_newest,
    "send": _send,
    "count": _count,
    "came": _came,
    "load": _load,
    "restore": _restore,
    "restore value": lambda event: event.on_ps(value=(-event.servers.restores,)),
    "step": lambda event: event.on_all(event.servers.step),
    "next step": lambda event: event.on_all((event.servers.step or 0) + 1, step=(event.servers.step or 0) + 1),
    "era": lambda event: event.on_all(event.servers.era),
    "last era": lambda event: event.on_all(event.servers.era or 0),
    "no counts": lambda event: event.on_all(int(event.servers.counts is None)),
    "set era": lambda event: event.on_all(era=event.op.args[0]),
    "counts": lambda event: event.on_all(event.servers.counts),
    "count all": lambda event: event.on_all(counts=(event.op.args[0],) * len(event.servers.tokens)),
    "count own": lambda event: event.on_all(counts=_with(event.servers.counts or (), event.worker, event.op.args[0])),
    "drain": lambda event: event.on_all(tokens=_with(event.servers.tokens, event.op.args[0], ())),
    "gradients": lambda event: event.on_ps(len(event.ps.gradients)),
    "stamp": lambda event: event.on_ps(stamp=event.op.args[0]),
    "note all": lambda event: event.on_ps(
        given=(event.memory.step + event.memory.era,) * len(event.servers.tokens),
        applied=event.memory.step + event.memory.era,
    ),
    "stamp now": lambda event: event.here(event.memory.step + event.memory.era),
    "came next": _came_next,
    "turn": _turn,
    "end": lambda event: event.on_ps(),
    "late": lambda event: event.on_all((event.servers.step or 0) > event.memory.step),
    "start finisher": lambda event: event.here(to_finish=event.op.args[0]),
    "prepare": lambda event: event.on_ps(outbox=event.ps.value),
    "read outbox": lambda event: event.on_ps(event.ps.outbox),
    "note applied": lambda event: event.on_ps(applied=event.results[event.op.args[0]] + 1),
    "settle": lambda event: event.on_ps(applied=event.memory.step + event.memory.era + 1),
    "applied": lambda event: event.on_ps(event.ps.applied),
    "send turns": lambda event: _put(event, (event.results[event.op.args[0]] + 1,)),
    "release": lambda event: _put(event, (CLOSED,) * event.op.args[0]),
    "drain turns": lambda event: event.on_ps(turns=_with(event.ps.turns, event.op.args[0], ())),
    "given": lambda event: event.on_ps(event.ps.given),
    "read": lambda event: event.on_ps(event.ps.value),
    "is missing": lambda event: event.on_ps(int(_is_missing(event))),
    "fill": lambda event: event.here(values=tuple(event.results[place] for place in event.op.args)),
    "forget": lambda event: event.here(came=()),
    "take step": lambda event: event.here(step=event.op.args[0]),
    "take era": lambda event: event.here(era=event.op.args[0]),
}


def _is_missing(event: Event) -> bool:
    """Return whether something has no value there that a worker needs to join."""
    of_all = (event.servers.step, event.servers.era, event.servers.counts) if event.op.server == 0 else ()
    return event.ps.value is None or None in of_all


def _with(items: Tuple[Any, ...], index: int, item: Any) -> Tuple[Any, ...]:
    return (*items[:index], item, *items[index + 1 :])
