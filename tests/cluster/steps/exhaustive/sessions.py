"""Sessions that run one operation at a time.

A session has the results of the calls so far; the next call ends the code, and names the operations that it waits for.
So a worker's state is what its sessions have answered, and any state can be continued in every way.
"""

from typing import Any, Callable, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tests.cluster.steps.exhaustive.servers import Op


class Run(NamedTuple):
    """The size of a run, and its kind: each server has so many pushes, and a step may lack ``backup`` workers."""

    workers: int
    ps: int
    steps: int
    overlaps: bool = False
    pushes: int = 1
    backup: int = 0

    @property
    def required(self) -> int:
        """Return the number of gradients that make a step."""
        return self.workers - self.backup

    @property
    def all_pushes(self) -> int:
        """Return the number of pushes of all servers."""
        return self.ps * self.pushes

    @property
    def firsts(self) -> Sequence[int]:
        """Return the first push of each server."""
        return range(0, self.all_pushes, self.pushes)


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
