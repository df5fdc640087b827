"""Send pushes to each server in one order, with few under way at a time.

Without this limit, all pushes would share the network and arrive together at the end. Then a worker would have nothing
left to send while new values come back.
"""

import dataclasses
from typing import Any, Dict, List

from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Push, Received

WINDOW = 3  # pushes of one server that are under way: one there, one back, and one as a reserve


class SendWindow:
    """The turns of one worker's pushes, in the order in which they are asked for.

    Attributes:
      values: all those that have come back to the worker, by name.
      at_once: what to feed to a session for pushes that are not to wait for their turns.
    """

    def __init__(self) -> None:
        self.values: Dict[str, Any] = {}
        self.at_once: Dict[Any, int] = {}
        self._back: Dict[str, List[Any]] = {}  # for each server, in the order of its pushes

    def wait(self, push: Push) -> Push:
        """Return the push with a gradient that waits for the push's turn.

        The gradient waits for the values of the push that was sent ``WINDOW`` pushes before, to the same server.
        """
        back = self._back.get(push.device, [])
        if len(back) < WINDOW:
            return push
        return dataclasses.replace(push, grad=tf.identity_n([push.grad, back[-WINDOW]])[0])

    def note_return(self, push: Push, came: Received) -> None:
        """Note the new values of a push."""
        self._back.setdefault(push.device, []).append(came.arrived)
        self.at_once[came.arrived] = 1
        self.values.update(came.values)
