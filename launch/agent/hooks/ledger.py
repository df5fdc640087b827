"""hooks.json in the lead's folder: the events so far, and the deliveries that are not done.

The lead writes it before the first try of an event. So another agent of the lead raises no event again, and
goes on with the deliveries. It may repeat a try whose end was not recorded; the event then has the same id.
"""

from dataclasses import dataclass, field
from typing import List, Tuple

from launch.agent.state.log import say
from launch.agent.state.run_folder import RunFolder
from launch.status.hook_event import HookEvent
from launch.status.values import Malformed, from_values, to_values

FILE = "hooks.json"


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


def read(folder: RunFolder) -> Ledger:
    """Return the ledger of the agent before; an empty one where there is none."""
    try:
        values = folder.read(FILE)
        return Ledger() if values is None else from_values(Ledger, values)
    except (OSError, ValueError) as error:
        what = str(error) if isinstance(error, Malformed) else type(error).__name__
        say(f"{folder.own / FILE} cannot be read ({what}); events may come again, with their ids")
        return Ledger()


def write(folder: RunFolder, ledger: Ledger) -> None:
    """Replace the file; a full disk is no reason to end a run."""
    folder.note(FILE, to_values(ledger))
