"""Threads, pools of threads and their results, for the programs of the simulated world."""

import math
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future
from functools import partial
from typing import Any, Callable, Deque, Iterable, Iterator, List, Optional, Set, Tuple

from tests.simulation.launcher.baton import Bell, Strand, wait
from tests.simulation.launcher.programs import me


class Pool:
    """In the place of ``ThreadPoolExecutor``: so many calls at a time, each in a strand."""

    def __init__(self, max_workers: int, thread_name_prefix: str = ""):
        self._most, self._working, self._program = max_workers, 0, me()
        self._waiting: Deque[Tuple[Any, Callable[[], Any]]] = deque()
        self._done = Bell()
        self._program.joining.append(self.shutdown)

    def submit(self, function: Callable[..., Any], *of: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self._waiting.append((future, partial(function, *of)))
        if self._working < self._most:
            self._working += 1
            self._program.begin(self._work)
        return future

    def _work(self) -> None:
        try:
            while self._waiting:
                future, call = self._waiting.popleft()
                if future.set_running_or_notify_cancel():
                    _answer(future, call)
        finally:
            self._working -= 1
            self._done.ring()

    def map(self, function: Callable[[Any], Any], values: Iterable[Any]) -> Iterator[Any]:
        futures = [self.submit(function, each) for each in values]
        wait_for(futures)
        return iter([each.result() for each in futures])

    def shutdown(self, wait: bool = True) -> None:
        if wait:
            _wait(math.inf, lambda: not self._working, self._done)

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *error: Any) -> None:
        self.shutdown()


_wait = wait


def _answer(future: "Future[Any]", call: Callable[[], Any]) -> None:
    try:
        result = call()
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def wait_for(
    futures: Iterable["Future[Any]"], timeout: Optional[float] = None, return_when: str = "ALL_COMPLETED"
) -> Tuple[Set["Future[Any]"], Set["Future[Any]"]]:
    """Wait for results, as ``concurrent.futures.wait`` does."""
    every, bell = list(futures), Bell()
    is_one = return_when == FIRST_COMPLETED

    def ready() -> bool:
        return (any if is_one else all)([each.done() for each in every])

    for each in every:
        each.add_done_callback(lambda _: bell.ring())
    wait(math.inf if timeout is None else timeout, ready, bell)
    done: List[Any] = [each for each in every if each.done()]
    return set(done), set(every) - set(done)


class Event:
    """In the place of ``threading.Event``."""

    def __init__(self) -> None:
        self._is_set, self._bell = False, Bell()

    def set(self) -> None:
        self._is_set = True
        self._bell.ring()

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float) -> bool:
        return wait(timeout, self.is_set, self._bell)


class Thread:
    """In the place of ``threading.Thread``."""

    def __init__(self, target: Callable[..., Any], args: Tuple[Any, ...] = (), daemon: bool = False):
        self._call: Any = partial(target, *args)
        self._strand: Optional[Strand] = None

    def start(self) -> None:
        self._strand = me().begin(self._call)

    def join(self, timeout: float = math.inf) -> None:
        if self._strand is not None:
            _joined(self._strand, timeout)


def _joined(strand: Strand, timeout: float) -> None:
    wait(timeout, lambda: strand.is_over, strand.ended)
