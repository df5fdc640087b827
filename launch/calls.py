"""Parallel calls to several hosts, and the deadline that all calls of a verb share.

At most ``ssh.fanout`` calls run at a time. A call that waits for a silent host uses no processor of this machine. So if
the verb has a deadline, one more call may begin for each slow call. At most ``ssh.fanout`` more calls begin, because
healthy hosts are slow, too, if this machine is busy.
"""

import math
import threading
import time
from collections import deque
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Callable, Dict, Generic, Iterator, List, Mapping, Optional, Tuple, TypeVar

from cluster.spec.model import Ssh
from launch.errors import HostProblem, ProblemKind

T = TypeVar("T")
LOOK_S = 0.2
SLOW_SHARE = 0.5  # of ssh.connect_timeout_s: a host that takes longer lends its place
_OUT_OF_REACH = (  # a host that is only slow may answer the next question
    ProblemKind.UNREACHABLE,
    ProblemKind.UNKNOWN_NAME,
    ProblemKind.HOST_KEY,
    ProblemKind.AUTHENTICATION,
    ProblemKind.SSHD,
    ProblemKind.GATEWAY,
)


class VerbDeadline:
    """The deadline of a verb, and the problems of the hosts that the verb does not try again.

    ``until`` is a time of ``time.monotonic()``. Without a deadline, the verb tries every host at each request.

    Args:
      before: the deadline of the surrounding block; the earlier of both deadlines counts.
    """

    def __init__(self, seconds: float = math.inf, before: "Optional[VerbDeadline]" = None):
        self.seconds, self.until = seconds, time.monotonic() + seconds
        self.gone: Dict[str, HostProblem] = {}
        if before is not None and before.is_bounded:
            self.gone = before.gone
            if before.until < self.until:
                self.seconds, self.until = before.seconds, before.until

    @property
    def is_bounded(self) -> bool:
        """Return whether there is a deadline."""
        return self.until < math.inf

    def limit(self, timeout_s: float) -> Tuple[float, str]:
        """Return the time by which a host must answer a question, and the problem's text if it does not.

        A question may take ``timeout_s`` seconds, but no longer than the verb's deadline.
        """
        until = time.monotonic() + timeout_s
        if until <= self.until:
            return until, f"no answer within {timeout_s:.0f} s"
        return self.until, f"no answer within {self.seconds:.0f} s, the deadline of this verb"

    def note(self, problems: Mapping[str, HostProblem]) -> None:
        """Remember the hosts that cannot be reached, directly or by a gateway; do nothing without a deadline."""
        if self.is_bounded:
            self.gone.update((host, each) for host, each in problems.items() if each.kind in _OUT_OF_REACH)


class ThreadDeadline(threading.local):
    """The current deadline, ``now``, separate for each thread: ``launch view`` asks hosts in several threads."""

    def __init__(self) -> None:
        self.now = VerbDeadline()


class Calls(Generic[T]):
    """Calls in a pool of threads, by host.

    Args:
      calls: the function to call for each host; ``settings.fanout`` calls run at a time.
      lends: whether one more call may begin for each slow call.
    """

    def __init__(self, calls: Mapping[str, Callable[[], T]], pool: ThreadPoolExecutor, settings: Ssh, lends: bool):
        self._pool, self._fanout = pool, settings.fanout
        self._lends_after_s = SLOW_SHARE * settings.connect_timeout_s if lends else math.inf
        self._waiting = deque(calls.items())
        self._begun: Dict[str, Tuple[Future[T], float]] = {}

    def run(self, until: float) -> Iterator[None]:
        """Make the calls, until all have ended or ``until`` has come; yield at least every ``LOOK_S`` seconds.

        ``until`` is a time of ``time.monotonic()``.
        """
        while (self._waiting or self._running()) and time.monotonic() < until:
            self._begin()
            yield
            seconds = min(LOOK_S, max(0.0, until - time.monotonic()))
            wait(self._running(), seconds, FIRST_COMPLETED if self._waiting else ALL_COMPLETED)

    def _running(self) -> "List[Future[T]]":
        return [future for future, _ in self._begun.values() if not future.done()]

    def _begin(self) -> None:
        """Begin as many calls as may run now."""
        now = time.monotonic()
        ages = [now - at for future, at in self._begun.values() if not future.done()]
        lent = min(self._fanout, sum(age >= self._lends_after_s for age in ages))
        for _ in range(min(len(self._waiting), self._fanout + lent - len(ages))):
            name, call = self._waiting.popleft()
            self._begun[name] = self._pool.submit(call), now

    def cancel(self) -> None:
        """Drop the calls that have not begun."""
        self._waiting.clear()
        for future, _ in self._begun.values():
            future.cancel()

    def ended(self) -> Tuple[Dict[str, T], Dict[str, HostProblem], List[str]]:
        """Return the results, the problems, and the hosts of unfinished calls; drop the calls that have not begun."""
        waiting = [name for name, _ in self._waiting]
        unfinished: List[str] = []
        self.cancel()
        results: Dict[str, T] = {}
        problems: Dict[str, HostProblem] = {}
        for name, (future, _) in self._begun.items():
            error = future.exception() if future.done() and not future.cancelled() else None
            if not future.done() or future.cancelled():
                unfinished.append(name)
            elif error is None:
                results[name] = future.result()
            elif isinstance(error, HostProblem):
                problems[name] = error
            else:
                raise error
        return results, problems, [*unfinished, *waiting]
