"""The workers' own code, with sessions that run one operation at a time.

``SyncWorker`` and ``Joining`` run here unchanged. A session has the results of the calls so far; the next call ends the
code, and names the operations that it waits for. So a worker's state is what its sessions have answered, and any state
can be continued in every way.
"""

from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple
from unittest import mock

import numpy as np

from cluster.runtime.tf_compat import tf
from cluster.steps import sync_worker
from cluster.steps.sync_worker import SyncWorker
from cluster.training import joining
from tests.cluster.steps.exhaustive.servers import CLOSED, Of, Op


class Run(NamedTuple):
    """The size of a run."""

    workers: int
    ps: int
    steps: int


class Life(NamedTuple):
    """A worker's state since it joined, or its last step: attributes of its ``SyncWorker``, and the answers so far."""

    attributes: Optional[Tuple[Any, ...]] = None  # None until it has joined
    answers: Tuple[Any, ...] = ()


class Call(Exception):
    """The next call of a session: its operations."""

    def __init__(self, ops: Sequence[Op]):
        super().__init__()
        self.ops = tuple(ops)


class Retry(Exception):
    """A condition that does not hold yet: it is asked again, without the answers from ``since`` on."""

    def __init__(self, since: int):
        super().__init__()
        self.since = since


class Fetch:
    """Something that a session can fetch: it adds its operations, and returns how the results become its value."""

    def __init__(self, build: Callable[[List[Op], Mapping[Any, Any]], Callable[[Tuple[Any, ...]], Any]]):
        self.build = build


class Session:
    """A session with the results of its calls so far."""

    def __init__(self, answers: Sequence[Any]):
        self._answers, self.at = list(answers), 0

    def run(self, fetches: Any, feed_dict: Any = None, options: Any = None) -> Any:
        """Return the answer of recorded results. Raises Call without any."""
        ops: List[Op] = []
        value = _built(fetches, ops, feed_dict or {})
        if self.at == len(self._answers):
            raise Call(ops)
        self.at += 1
        return value(self._answers[self.at - 1])

    def close(self) -> None:
        """Do nothing."""


def _built(fetches: Any, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
    if isinstance(fetches, (list, tuple)):
        parts = [_built(each, ops, feeds) for each in fetches]
        return lambda results: [part(results) for part in parts]
    if fetches is None:
        return lambda results: None
    value: Callable[[Tuple[Any, ...]], Any] = fetches.build(ops, feeds)
    return value


def plain(name: str, server: Optional[int] = 0, *args: Any) -> Fetch:
    """Return what runs one operation, and has its result."""

    def build(ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        given = tuple(feeds[NUMBER] if arg is NUMBER else arg for arg in args)
        ops.append(Op(name, server, given))
        place = len(ops) - 1
        return lambda results: results[place]

    return Fetch(build)


NUMBER = "number"


def many(*fetches: Fetch, value: Callable[[List[Any]], Any] = lambda values: None) -> Fetch:
    """Return what runs several at once, in any order."""

    def build(ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        parts = [each.build(ops, feeds) for each in fetches]
        return lambda results: value([part(results) for part in parts])

    return Fetch(build)


def constant(value: Any) -> Fetch:
    """Return what has a value without any operation."""
    return Fetch(lambda ops, feeds: lambda results: value)


def as_array(fetch: Fetch) -> Fetch:
    """Return the same as an array."""

    def build(ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        part = fetch.build(ops, feeds)
        return lambda results: np.array(part(results))

    return Fetch(build)


class Copies:
    """Stands in for ``LocalCopies``, by the same rules."""

    def __init__(self, ps: int):
        self._ps, self.is_filled = ps, False

    def load(self, session: Any, step: int) -> Optional[int]:
        if self.is_filled:
            self.is_filled = False
            return None
        return int(session.run(plain("load", None)))

    def fill(self, session: Any, step: int, also: Sequence[Any] = ()) -> None:
        session.run(self.forgotten)
        session.run(Fetch(self._fill))
        self.is_filled = True

    def keep(self, session: Any) -> None:
        raise NotImplementedError

    forgotten = plain("forget", None)

    def _fill(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        first = len(ops)
        ops += [Op("read", index) for index in range(self._ps)]
        reads = tuple(range(first, first + self._ps))
        ops.append(Op("fill", None, reads, reads))
        return lambda results: None


class Optimizer:
    """Stands in for ``TokenSyncOptimizer``: the same operations, in the same order."""

    is_strict = True
    behind = None

    def __init__(self, run: Run, worker: int):
        self._run, self.worker_index, self.num_workers = run, worker, run.workers
        self.is_chief, self.copies = worker == 0, Copies(run.ps)
        self.waited, self.forget = constant(np.float64(0)), constant(None)
        self.era, self.contributions = plain("era"), as_array(plain("counts"))
        self.next_token, self.drain = plain("take newest"), plain("drain", 0, worker)
        self.drain_all = many(*(plain("drain", 0, each) for each in range(run.workers)))
        self.recall = many(*(plain("send", 0, each, CLOSED) for each in range(1, run.workers)))
        self.servers = [SimpleNamespace(given=as_array(plain("given", index))) for index in range(run.ps)]
        self.give = [plain("push", index) for index in range(run.ps)]
        self.at_once: Mapping[Any, Any] = {}
        self.empty = [plain("take", index, 1) for index in range(run.ps)]
        self.accumulated = many(*(plain("gradients", index) for index in range(run.ps)), value=np.array)
        self.oldest, self.announce = NUMBER, Fetch(self._announce)
        self.set_stamps = many(*(plain("stamp", index, NUMBER) for index in range(run.ps)))
        self.clear_notes = many(*(plain("note all", index) for index in range(run.ps)))
        self.finish = Fetch(self._finish_alone)

    def apply_gradients(self, *_: Any) -> Fetch:
        """Return the token of a whole step."""
        return Fetch(self._step)

    def _step(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        ops += [Op("push", index) for index in range(self._run.ps)]
        counted = _add(ops, Op("count", 0, (), tuple(range(self._run.ps))))
        sent = self._finish(ops) if self.is_chief else ()
        token = _add(ops, Op("take newest", 0, (), (counted, *sent)))
        reads = tuple(_add(ops, Op("read", index, (), (token,))) for index in range(self._run.ps))
        _add(ops, Op("came", None, (token, *reads), (token, *reads)))
        return lambda results: results[token]

    def _finish_alone(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        self._finish(ops)
        return lambda results: None

    def _finish(self, ops: List[Op]) -> Tuple[int, ...]:
        takes = tuple(_add(ops, Op("take", index, (self._run.workers,))) for index in range(self._run.ps))
        applied = tuple(_add(ops, Op("apply", index, (take,), takes)) for index, take in enumerate(takes))
        return self._sent(ops, _add(ops, Op("next step", 0, (), applied)))

    def _sent(self, ops: List[Op], step: int) -> Tuple[int, ...]:
        return tuple(_add(ops, Op("send", 0, (each, Of(step)), (step,))) for each in range(self._run.workers))

    def _announce(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        self._sent(ops, _add(ops, Op("step")))
        return lambda results: None


def _add(ops: List[Op], op: Op) -> int:
    ops.append(op)
    return len(ops) - 1


class Worker(SyncWorker):
    """The product's worker, whose session's operations are those of ``Optimizer``."""

    _copies: Any

    def _make_assignments(self) -> None:
        self._number = NUMBER
        self._take_step, self._take_era = plain("take step", None, NUMBER), plain("take era", None, NUMBER)
        self._set_era, self._last_era = plain("set era", 0, NUMBER), plain("last era")
        self._count_all, self._count_own = plain("count all", 0, NUMBER), plain("count own", 0, NUMBER)
        self._without_value, self._skip = plain("no counts"), plain("next step")

    _KEPT = ("_local", "_era", "_given")

    def attributes(self) -> Tuple[Any, ...]:
        """Return what the worker knows between two steps."""
        return (*(getattr(self, name) for name in self._KEPT), self._copies.is_filled)

    def adopt(self, attributes: Tuple[Any, ...]) -> None:
        """Continue with the attributes of an earlier moment."""
        *kept, self._copies.is_filled = attributes
        for name, value in zip(self._KEPT, kept):
            setattr(self, name, value)


def _worker(run: Run, index: int) -> Worker:
    parts: Any = SimpleNamespace(
        grads_and_vars=[], global_step=plain("step"), loss=constant(0.0), beginnings=(), num_workers=run.workers
    )
    return Worker(parts, Optimizer(run, index))  # type: ignore[arg-type]


def _joining(run: Run, worker: Worker, is_chief: bool) -> Any:
    """Return the product's way to join; only the checkpoint and the first values are others."""
    found: Any = joining.Joining.__new__(joining.Joining)
    found._last = SimpleNamespace(learn=lambda session: None, step=run.steps)
    found._settle = lambda session: None
    found._replica = SimpleNamespace(model=SimpleNamespace(parts=SimpleNamespace(shares=None)))
    found._stepper, found._opening = worker, ()
    found._first = SimpleNamespace(
        are_complete=lambda session: True, begin=_nothing, end=_nothing, are_the_chiefs=False
    )
    missing = [plain("is missing", index) for index in range(run.ps)]
    found._without_value = many(*missing, value=lambda values: np.zeros(sum(values)))
    restored = many(*(plain("restore value", index) for index in range(run.ps)))
    found._checkpoints = None
    if is_chief:
        restore = lambda session: (session.run(plain("restore")), session.run(restored)) and True  # noqa: E731
        found._checkpoints = SimpleNamespace(open=lambda: None, adopt=lambda: None, restore=restore)
    return found


def _nothing(*_: Any) -> None:
    pass


FINISHED, AGAIN = "finished", "again"


@lru_cache(maxsize=None)
def proceed(run: Run, index: int, life: Life, starts: int) -> Any:
    """Return what a worker does next: a Call, its Life from the next step on, FINISHED, or AGAIN: to join again.

    Args:
      starts: how often servers have started again, from which the time of day follows.
    """
    session, worker = Session(life.answers), _worker(run, index)
    activity: Any = SimpleNamespace(note=_nothing)

    def poll(what: str, condition: Callable[[], bool], *_: Any, **__: Any) -> None:
        since = session.at
        if not condition():
            raise Retry(since)

    with mock.patch.object(sync_worker, "wait_for", poll), mock.patch.object(joining, "wait_for", poll), \
            mock.patch("time.time", lambda: 1.8e9 + 60.0 * starts):  # fmt: skip
        try:
            if life.attributes is None:
                step = _joining(run, worker, index == 0).join(session, activity)
            else:
                worker.adopt(life.attributes)
                step = worker.step(session)[0]
        except Call as call:
            return call
        except Retry as retry:
            return Life(life.attributes, life.answers[: retry.since])
        except tf.errors.AbortedError:
            return AGAIN
    return FINISHED if step >= run.steps else Life(worker.attributes())
