"""The deliveries of a run's events: in parallel, with retries, and with limits on their time and number.

The file hooks.json in the folder of the chief's host, the ledger, has the events so far and the unfinished deliveries.
The agent writes it before it first tries to deliver an event. So a restarted agent reports no event again, and
continues the deliveries. It may repeat a try whose end was not recorded; the event then has the same id.
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
    """An event to deliver, and the index of its receiver in the request's list."""

    receiver: int
    event: HookEvent


@dataclass(frozen=True)
class Ledger:
    """The content of hooks.json.

    Attributes:
      raised: the names of the events that must not be reported again.
      pending: the unfinished deliveries, oldest first.
    """

    raised: Tuple[str, ...] = ()
    pending: List[Delivery] = field(default_factory=list)


def read_ledger(folder: RunFolder) -> Ledger:
    """Return the ledger that this agent's predecessor wrote; an empty ledger if none can be read."""
    try:
        values = folder.read(LEDGER)
        return Ledger() if values is None else from_values(Ledger, values)
    except (OSError, ValueError) as error:
        what = str(error) if isinstance(error, Malformed) else type(error).__name__
        say(f"{folder.own / LEDGER} cannot be read ({what}); receivers may get events again, with the same ids")
        return Ledger()


def write_ledger(folder: RunFolder, ledger: Ledger) -> None:
    """Write ``ledger`` to hooks.json, in place of its earlier content. On a full disk, the run continues without it."""
    folder.note(LEDGER, to_values(ledger))


AT_ONCE = 4  # processes
MOST = 50  # deliveries in progress; a further one replaces the oldest
FIRST_PAUSE_S, LONGEST_PAUSE_S, LAST_PAUSE_S = 1.0, 60.0, 1.0  # before a retry; the last at the end of the run
GIVE_UP_S = 600.0
LAST_S, HURRIED_S = 10.0, 1.0  # from the end of a run, for all remaining deliveries; after a kill
LOOK_S = 0.05

Send = Callable[[Receiver, HookEvent], Awaitable[Result]]


class Outbox:
    """The deliveries of one run.

    Args:
      send: tries once to deliver an event to a receiver.
      changed: called when a delivery is over.
    """

    def __init__(self, receivers: Sequence[Receiver], send: Send, changed: Callable[[], None]):
        self._receivers, self._send, self._changed = receivers, send, changed
        self._under_way: Dict[Tuple[int, str], Tuple[Delivery, asyncio.Future[None]]] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._is_last = asyncio.Event()  # set once the run has ended: no more long pauses
        self._last_s, self._until = LAST_S, 0.0  # then ``_until`` is the time at which deliveries are given up
        self._failing: Dict[int, str] = {}  # reasons by receiver number, the newest last

    @property
    def pending(self) -> List[Delivery]:
        """Return the unfinished deliveries, oldest first."""
        return [delivery for delivery, _ in self._under_way.values()]

    @property
    def problem(self) -> Optional[str]:
        """Return the newest failure of a receiver that has accepted no event since; None without a failure."""
        found = [f"{self._receivers[number].label}: {reason}" for number, reason in self._failing.items()]
        return found[-1] if found else None

    def add(self, events: Iterable[HookEvent]) -> None:
        """Start to deliver each event to every receiver of this kind of event."""
        for event in events:
            for number, receiver in enumerate(self._receivers):
                if receiver.event == event.event:
                    self.begin(Delivery(number, event))

    def begin(self, delivery: Delivery) -> None:
        """Start a delivery; where ``MOST`` deliveries are in progress, the new one replaces the oldest."""
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
        """Forget a finished delivery; a delivery that ends with its agent stays pending for the next agent."""
        if self._under_way.pop(key, None) is not None and not cancelled:
            self._changed()

    async def _deliver(self, delivery: Delivery) -> None:
        """Try until the receiver accepts the event, can never accept it, or the event is too old."""
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
        """Record the newest reason of a receiver."""
        self._failing.pop(number, None)
        self._failing[number] = reason

    async def _pause(self, seconds: float) -> None:
        """Wait before a retry, only shortly where the run has ended or ends meanwhile."""
        if self._is_last.is_set():
            await asyncio.sleep(LAST_PAUSE_S)
        else:
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._is_last.wait(), seconds)

    # -- the end of the run

    def finish(self) -> None:
        """Record that the run has ended, and limit the remaining deliveries to ``LAST_S`` seconds from now.

        From now on, a new try of a delivery does not wait for the tries in progress: those may last for ``LAST_S``.
        """
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._until = now() + self._last_s
        self._is_last.set()

    def hurry(self) -> None:
        """Limit the remaining deliveries of a killed run to ``HURRIED_S`` seconds."""
        self._last_s, self._until = HURRIED_S, min(self._until, now() + HURRIED_S)

    async def settle(self) -> None:
        """Wait until the remaining deliveries have ended or their time limit is over; then give up the others."""
        while self._under_way and now() < self._until:
            await asyncio.sleep(LOOK_S)
        left = list(self._under_way.values())
        for delivery, task in left:
            number, never = delivery.receiver, f"it did not end within {self._last_s:.0f} s of the run's end"
            self._note(number, self._failing.get(number, never))
            say(f"hook {self._receivers[number].label}: {self._failing[number]}; gave up at the end of the run")
            task.cancel()
        if left:
            await asyncio.wait([task for _, task in left], timeout=2 * GONE_S)
