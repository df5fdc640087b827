"""The hooks of one run: its lead hands over statuses, and receivers get events."""

from typing import Callable, Optional

from cluster.protocol.outcome import WORK
from launch.agent.hooks import outbox
from launch.agent.hooks.events import Events
from launch.agent.hooks.outbox import Ledger, Outbox
from launch.agent.hooks.receivers import Receiver, Result, receivers, try_once
from launch.agent.protocol.links import now
from launch.agent.state.run_folder import RunFolder
from launch.agent.wire.run_request import RunRequest
from launch.status.hook_event import HookEvent
from launch.status.run import RunStatus


class Hooks:
    """Make events of statuses, and deliver each once to each of its receivers.

    Args:
      request: of the lead; it has the receivers, and the values of secrets.
      restore_code: restores this agent's own code, of which somebody may have removed files.
    """

    def __init__(self, request: RunRequest, folder: RunFolder, restore_code: Callable[[], None]):
        self._folder, self._restore_code = folder, restore_code
        self._secrets = list(request.secrets.values())
        chief = next((task.name for task in request.tasks if task.chief), "")
        self._receivers = receivers(request.hooks, request.secrets, folder.task(chief) / WORK)
        self._outbox = Outbox(self._receivers, self._send, self._record)
        before = outbox.read_ledger(folder) if self._receivers else Ledger()
        self._events = Events(before.raised)
        for delivery in before.pending:
            self._outbox.begin(delivery)

    @property
    def problem(self) -> Optional[str]:
        """Return the newest problem of a receiver that has taken nothing since."""
        return self._outbox.problem

    def look(self, status: RunStatus, was_up: bool) -> None:
        """Deliver the events that a status shows.

        Args:
          was_up: whether every task has been up at some time.
        """
        events = self._events.look(status, was_up, now()) if self._receivers else []
        if events:
            self._outbox.add(events)
            self._record()  # before the first try, which begins when the lead waits next

    def finish(self) -> None:
        """Record that the run has ended; from now on the lead waits only a short time for receivers."""
        self._outbox.finish()

    def hurry(self) -> None:
        """Shorten the last wait: somebody kills the run."""
        self._outbox.hurry()

    async def settle(self) -> None:
        """Wait for the receivers after ``finish``, in bounded time."""
        await self._outbox.settle()

    async def _send(self, receiver: Receiver, event: HookEvent) -> Result:
        if receiver.is_url:
            self._restore_code()
        return await try_once(receiver, event, self._secrets)

    def _record(self) -> None:
        outbox.write_ledger(self._folder, Ledger(tuple(sorted(self._events.raised)), self._outbox.pending))
