"""The deliveries of a run's events: side by side, another try after a pause, in bounded time and number.

hooks.json in the lead's folder, the ledger, has the events so far and the deliveries that are not done. The lead writes
it before the first try of an event. So another agent of the lead raises no event again, and goes on with the
deliveries. It may repeat a try whose end was not recorded; the event then has the same id.
"""

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import Awaitable, Callable, Dict, Iterable, List, Optional, Sequence, Tuple

from cluster.protocol.quantity import quantity
from cluster.protocol.typed_json import Malformed, from_values, to_values
from launch.agent.hooks.receivers import Receiver, Result
from launch.agent.linux.program import GONE_S
from launch.agent.protocol.links import now
from launch.agent.state.log import say, say_seldom
from launch.agent.state.run_folder import RunFolder
from launch.status.hook_event import HookEvent

LEDGER = "hooks.json"


@dataclass(frozen=True)
class Delivery:
    """An event on its way to the receiver of this number, which counts the receivers of the request from 0."""

    receiver: int
    event: HookEvent


@dataclass(frozen=True)
class Ledger:
    """The content of the file.

    Attributes:
      raised: the events that are not to come again, as ``events`` names them.
      pending: the deliveries that are not done, oldest first.
    """

    raised: Tuple[str, ...] = ()
    pending: List[Delivery] = field(default_factory=list)


def read_ledger(folder: RunFolder) -> Ledger:
    """Return the ledger of the agent before; an empty one where there is none."""
    try:
        values = folder.read(LEDGER)
        return Ledger() if values is None else from_values(Ledger, values)
    except (OSError, ValueError) as error:
        what = str(error) if isinstance(error, Malformed) else type(error).__name__
        say(f"{folder.own / LEDGER} cannot be read ({what}); events may come again, with their ids")
        return Ledger()


def write_ledger(folder: RunFolder, ledger: Ledger) -> None:
    """Replace the file; a full disk is no reason to end a run."""
    folder.note(LEDGER, to_values(ledger))


AT_ONCE = 4  # processes
MOST = 50  # deliveries under way; another one takes the place of the oldest
FIRST_PAUSE_S, LONGEST_PAUSE_S, LAST_PAUSE_S = 1.0, 60.0, 1.0  # before another try; the last at the end of the run
GIVE_UP_S = 600.0
LAST_S, HURRIED_S = 10.0, 1.0  # from the end of a run, for all deliveries that are left; after a kill
LOOK_S = 0.05

Send = Callable[[Receiver, HookEvent], Awaitable[Result]]


class Outbox:
    """The deliveries of one run.

    Args:
      send: makes one try.
      changed: is called when a delivery is over.
    """

    def __init__(self, receivers: Sequence[Receiver], send: Send, changed: Callable[[], None]):
        self._receivers, self._send, self._changed = receivers, send, changed
        self._under_way: Dict[Tuple[int, str], Tuple[Delivery, asyncio.Future[None]]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._is_last = asyncio.Event()  # the run has ended: no long pause any more
        self._last_s, self._until = LAST_S, 0.0  # the time at which deliveries are given up then
        self._failing: Dict[int, str] = {}  # the reasons by the numbers of receivers, the newest last

    @property
    def pending(self) -> List[Delivery]:
        """Return the deliveries that are not over, oldest first."""
        return [delivery for delivery, _ in self._under_way.values()]

    @property
    def problem(self) -> Optional[str]:
        """Return the newest problem of a receiver that has taken nothing since."""
        found = [f"{self._receivers[number].label}: {reason}" for number, reason in self._failing.items()]
        return found[-1] if found else None

    def add(self, events: Iterable[HookEvent]) -> None:
        """Begin the deliveries of events."""
        for event in events:
            for number, receiver in enumerate(self._receivers):
                if receiver.event == event.event:
                    self.begin(Delivery(number, event))

    def begin(self, delivery: Delivery) -> None:
        """Begin a delivery, in the place of the oldest one where there are too many."""
        if len(self._under_way) >= MOST:
            self._give_up_oldest()
        key = delivery.receiver, delivery.event.id
        task = asyncio.ensure_future(self._deliver(delivery))
        self._under_way[key] = delivery, task
        task.add_done_callback(lambda done: self._forget(key, done.cancelled()))

    def _give_up_oldest(self) -> None:
        key, (delivery, task) = next(iter(self._under_way.items()))
        self._note(delivery.receiver, f"more than {MOST} events wait for receivers")
        del self._under_way[key]
        task.cancel()

    def _forget(self, key: Tuple[int, str], cancelled: bool) -> None:
        """Forget a delivery that is over; one that ends with its agent is pending for the next agent."""
        if self._under_way.pop(key, None) is not None and not cancelled:
            self._changed()

    async def _deliver(self, delivery: Delivery) -> None:
        """Try until the event is taken, cannot be, or is too old."""
        number, began, pause_s, tries = delivery.receiver, now(), FIRST_PAUSE_S, 0
        receiver = self._receivers[number]
        while True:
            async with self._slots:
                result = await self._send(receiver, delivery.event)
            tries += 1
            if result.taken:
                self._failing.pop(number, None)
                return
            self._note(number, result.reason)
            if not result.again or now() - began >= GIVE_UP_S:
                say(f"hook {receiver.label}: {result.reason}; gave up after {quantity(tries, 'try', 'tries')}")
                return
            say_seldom(f"hook {receiver.label}", f"hook {receiver.label}: {result.reason}; trying again")
            await self._pause(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _note(self, number: int, reason: str) -> None:
        """Make this the newest reason of a receiver."""
        self._failing.pop(number, None)
        self._failing[number] = reason

    async def _pause(self, seconds: float) -> None:
        """Wait before another try, shortly where the run has ended or ends meanwhile."""
        if self._is_last.is_set():
            await asyncio.sleep(LAST_PAUSE_S)
        else:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._is_last.wait(), seconds)

    # -- the end of the run

    def finish(self) -> None:
        """Begin the last seconds: record that the run has ended.

        From now on no try waits for those that are under way, which may last as long as these seconds.
        """
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._until = now() + self._last_s
        self._is_last.set()

    def hurry(self) -> None:
        """Make the last seconds ``HURRIED_S``: somebody kills the run."""
        self._last_s, self._until = HURRIED_S, min(self._until, now() + HURRIED_S)

    async def settle(self) -> None:
        """Wait for the deliveries that are left, until the last seconds are over; give up the rest."""
        while self._under_way and now() < self._until:
            await asyncio.sleep(LOOK_S)
        left = list(self._under_way.values())
        for delivery, task in left:
            number, never = delivery.receiver, f"no end within {self._last_s:.0f} s of the run's end"
            self._note(number, self._failing.get(number, never))
            say(f"hook {self._receivers[number].label}: {self._failing[number]}; gave up at the end of the run")
            task.cancel()
        if left:
            await asyncio.wait([task for _, task in left], timeout=2 * GONE_S)
