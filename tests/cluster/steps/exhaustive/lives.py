"""The workers' own code: ``SyncWorker``, ``OverlappedWorker`` and ``Joining`` run here unchanged."""

from contextlib import ExitStack
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, Callable, List, Tuple
from unittest import mock

import numpy as np

from cluster.runtime.tf_compat import tf
from cluster.steps import overlapped_sync, sync_worker
from cluster.steps.base_worker import StepParts
from cluster.steps.overlapped_sync import OverlappedWorker
from cluster.steps.sync_worker import SyncWorker
from cluster.training import joining
from tests.cluster.steps.exhaustive.operations import Optimizer, OverlappedOptimizer
from tests.cluster.steps.exhaustive.servers import Op
from tests.cluster.steps.exhaustive.sessions import NUMBER, Call, Life, Retry, Run, Session, constant, many, plain


class Worker(SyncWorker):
    """The product's worker, whose session's operations are those of ``Optimizer``."""

    _copies: Any

    def _make_assignments(self) -> None:
        self._number = NUMBER
        self._take_step, self._take_era = plain("take step", None, NUMBER), plain("take era", None, NUMBER)
        self._set_era, self._last_era = plain("set era", 0, NUMBER), plain("last era")
        self._count_all, self._count_own = plain("count all", 0, NUMBER), plain("count own", 0, NUMBER)
        self._without_value, self._skip = plain("no counts"), plain("next step")

    def _start_finisher(self, session: Any, steps: int) -> None:
        if self._optimizer.is_chief and not self._exact:
            session.run(plain("start finisher", None, steps))

    _KEPT = ("_local", "_era", "_given")

    def attributes(self) -> Tuple[Any, ...]:
        """Return what the worker knows between two steps."""
        return (*(getattr(self, name) for name in self._KEPT), self._copies.is_filled)

    def adopt(self, attributes: Tuple[Any, ...]) -> None:
        """Continue with the attributes of an earlier moment."""
        *kept, self._copies.is_filled = attributes
        for name, value in zip(self._KEPT, kept):
            setattr(self, name, value)


class WorkerThatOverlaps(Worker, OverlappedWorker):
    """The product's worker of overlapped steps, whose session's operations are those of ``OverlappedOptimizer``."""

    def __init__(self, parts: StepParts, optimizer: Any):
        SyncWorker.__init__(self, parts, optimizer)


@lru_cache(maxsize=None)
def finishing(run: Run) -> Tuple[Op, ...]:
    """Return the operations of the chief's ``Finisher`` for one step."""
    ops: List[Op] = []
    Optimizer(run, 0).finish.build(ops, {})
    return tuple(ops)


def _worker(run: Run, index: int) -> Worker:
    parts: Any = SimpleNamespace(
        grads_and_vars=[], global_step=plain("step"), loss=constant(0.0), beginnings=(), num_workers=run.workers
    )
    if run.overlaps:
        return WorkerThatOverlaps(parts, OverlappedOptimizer(run, index))
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
    missing = [plain("is missing", index) for index in range(run.all_pushes)]
    found._without_value = many(*missing, value=lambda values: np.zeros(sum(values)))
    restored = many(*(plain("restore value", index) for index in range(run.all_pushes)))
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

    with ExitStack() as patches:
        for module in (sync_worker, overlapped_sync, joining):
            patches.enter_context(mock.patch.object(module, "wait_for", poll))
        patches.enter_context(mock.patch("time.time", lambda: 1.8e9 + 60.0 * starts))
        try:
            if life.attributes is None:
                step = _joining(run, worker, index == 0).join(session, activity)
            else:
                worker.adopt(life.attributes)
                step = worker.step(session)[0]
        except Call as call:
            return call.with_traceback(None)  # whose frames would stay, with all that they hold
        except Retry as retry:
            return Life(life.attributes, life.answers[: retry.since])
        except tf.errors.AbortedError:
            return AGAIN
    return FINISHED if step >= run.steps else Life(worker.attributes())
