"""The operations of a worker's graph, as the product's optimizers make them."""

from functools import partial
from types import SimpleNamespace
from typing import Any, Callable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from tests.cluster.steps.exhaustive.servers import CLOSED, Of, Op
from tests.cluster.steps.exhaustive.sessions import NUMBER, Fetch, Run, as_array, constant, many, plain


class Copies:
    """Stands in for ``LocalCopies``, by the same rules."""

    def __init__(self, pushes: int):
        self._pushes, self.is_filled = pushes, False

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
        ops += [Op("read", index) for index in range(self._pushes)]
        reads = tuple(range(first, first + self._pushes))
        ops.append(Op("fill", None, reads, reads))
        return lambda results: None


class Optimizer:
    """Stands in for ``TokenSyncOptimizer``: the same operations, in the same order."""

    behind: Any = None

    def __init__(self, run: Run, worker: int):
        self.is_strict, self.late = not run.backup, Fetch(self._late)
        self._run, self.worker_index, self.num_workers = run, worker, run.workers
        self.is_chief, self.copies = worker == 0, Copies(run.all_pushes)
        self.waited, self.forget = constant(np.float64(0)), constant(None)
        self.era, self.contributions = plain("era"), as_array(plain("counts"))
        self.next_token, self.drain = plain("take newest"), plain("drain", 0, worker)
        self.drain_all = many(*(plain("drain", 0, each) for each in range(run.workers)))
        self.recall = many(*(plain("send", 0, each, CLOSED) for each in range(1, run.workers)))
        self.servers = [SimpleNamespace(given=as_array(plain("given", index))) for index in range(run.all_pushes)]
        self.give = [plain("push", index) for index in range(run.all_pushes)]
        self.at_once: Mapping[Any, Any] = {}
        self.empty = [plain("take", index, 1) for index in range(run.all_pushes)]
        self.accumulated = many(*(plain("gradients", index) for index in range(run.all_pushes)), value=np.array)
        self.oldest, self.announce = NUMBER, Fetch(self._announce)
        self.set_stamps = many(*(plain("stamp", index, NUMBER) for index in range(run.all_pushes)))
        self.clear_notes = many(*(plain("note all", index) for index in range(run.all_pushes)))
        self.finish = Fetch(self._finish_alone)

    def apply_gradients(self, *_: Any) -> Fetch:
        """Return the token of a whole step."""
        return Fetch(self._step)

    def _step(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        late = () if self.is_strict else (_add(ops, Op("late")),)
        gave = [_add(ops, Op("push", index, (), late)) for index in range(self._run.all_pushes)]
        counted = _add(ops, Op("count", 0, (self.is_strict,), tuple(gave)))
        sent = self._finish(ops) if self.is_chief and self.is_strict else ()
        token = _add(ops, Op("take newest", 0, (), (counted, *sent)))
        reads = tuple(_add(ops, Op("read", index, (), (token,))) for index in range(self._run.all_pushes))
        _add(ops, Op("came", None, (token, *reads), (token, *reads)))
        return lambda results: results[token]

    def _late(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        return lambda results: results[0]

    def _finish_alone(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        self._finish(ops)
        return lambda results: None

    def _finish(self, ops: List[Op]) -> Tuple[int, ...]:
        takes = tuple(_add(ops, Op("take", index, (self._run.required,))) for index in range(self._run.all_pushes))
        needed = self._run.required
        applied = tuple(_add(ops, Op("apply", index, (take, needed), takes)) for index, take in enumerate(takes))
        return self._sent(ops, _add(ops, Op("next step", 0, (), applied)))

    def _sent(self, ops: List[Op], step: int) -> Tuple[int, ...]:
        return tuple(_add(ops, Op("send", 0, (each, Of(step)), (step,))) for each in range(self._run.workers))

    def _announce(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        self._sent(ops, _add(ops, Op("step")))
        return lambda results: None


def _add(ops: List[Op], op: Op) -> int:
    ops.append(op)
    return len(ops) - 1


class OverlappedOptimizer(Optimizer):
    """Stands in for ``OverlappedSyncOptimizer``, with a window of one push."""

    def __init__(self, run: Run, worker: int):
        super().__init__(run, worker)
        firsts = run.firsts
        self.servers = [self._server(first) for first in firsts]
        self.drain = many(self.drain, *(plain("drain turns", first, worker) for first in firsts))
        every = [(first, each) for first in firsts for each in range(run.workers)]
        self.drain_all = many(self.drain_all, *(plain("drain turns", first, each) for first, each in every))
        self.release = many(*(plain("release", first, run.pushes) for first in firsts))
        self.recall = many(self.recall, self.release)
        self.finish_now = [Fetch(partial(self._finish_push, push)) for push in range(run.all_pushes)]
        self.places = [f"places {first}" for first in firsts]
        self.settle = [Fetch(partial(self._settle, first)) for first in firsts]
        self.conclude = Fetch(self._conclude)
        self.behind = Fetch(self._behind)

    def _server(self, first: int) -> Any:
        pushes = range(first, first + self._run.pushes)
        given = many(*(plain("given", push) for push in pushes), value=lambda found: np.array(found).ravel())
        return SimpleNamespace(given=given, applied=many(*(plain("applied", push) for push in pushes), value=np.array),
                               pushes=pushes)  # fmt: skip

    def _step(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        stamp = _add(ops, Op("stamp now", None))
        gave: List[int] = []
        turns: List[int] = []
        reads: List[int] = []
        for push in range(self._run.all_pushes):
            place = push % self._run.pushes
            gave.append(_add(ops, Op("push", push, (), tuple(reads[-1:] if place else ()))))
            turns.append(_add(ops, Op("turn", push - place, (), (gave[-1], *(turns[-1:] if place else ())))))
            reads.append(_add(ops, Op("read outbox", push, (), (turns[-1],))))
        counted = _add(ops, Op("count", 0, (self.is_strict,), tuple(gave)))
        sent = self._sent(ops, self._apply_all(ops, stamp)) if self.is_chief else ()
        token = _add(ops, Op("take newest", 0, (), (counted, *sent)))
        _add(ops, Op("came next", None, (stamp, *reads), tuple(reads)))
        self._stamp, self._turns = stamp, tuple(turns)
        return lambda results: results[token]

    def _behind(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        stamp, turns = self._stamp, self._turns
        return lambda results: results[stamp] + 1 - min(results[turn] for turn in turns)

    def _apply_all(self, ops: List[Op], stamp: int) -> int:
        done: List[int] = []
        sent: List[int] = []
        for push in range(self._run.all_pushes):
            place = push % self._run.pushes
            ready, noted = self._apply_push(ops, push, stamp)
            sent.append(_add(ops, Op("send turns", push - place, (stamp,), (ready, *(sent[-1:] if place else ())))))
            done += [noted, sent[-1]]
        # No server is done with before all have applied.
        ends = [_add(ops, Op("end", first, (), tuple(done))) for first in self._run.firsts]
        return _add(ops, Op("next step", 0, (), tuple(ends)))

    def _apply_push(self, ops: List[Op], push: int, stamp: int) -> Tuple[int, int]:
        take = _add(ops, Op("take", push, (self._run.required,)))
        applied = _add(ops, Op("apply", push, (take, self._run.required), (take,)))
        ready = _add(ops, Op("prepare", push, (), (applied,)))
        return ready, _add(ops, Op("note applied", push, (stamp,), (ready, stamp)))

    def _finish_push(self, push: int, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        self._apply_push(ops, push, _add(ops, Op("stamp now", None)))
        return lambda results: None

    def _settle(self, first: int, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        ops += [Op("settle", first + int(place)) for place in feeds[f"places {first}"]]
        return lambda results: None

    def _conclude(self, ops: List[Op], feeds: Mapping[Any, Any]) -> Callable[[Tuple[Any, ...]], Any]:
        self._sent(ops, _add(ops, Op("next step")))
        return lambda results: None
