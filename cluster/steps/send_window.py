"""Send loads to each server in one order, with few under way at a time.

Without this limit all loads would be on their way at once, share the network, and arrive together at the end. Nothing
would be left then to send meanwhile.
"""

import dataclasses
from typing import Any, Dict, List

from cluster.runtime.tf_compat import tf
from cluster.steps.exchange import Came, Load

WINDOW = 3  # loads of one server that are under way: one there, one back, and one as a reserve


class Turns:
    """The turns of one worker's loads, in the order in which they are asked for.

    Attributes:
      values: all those that have come back to the worker, by name.
      at_once: what to feed to a session for loads that are not to wait for their turns.
    """

    def __init__(self) -> None:
        self.values: Dict[str, Any] = {}
        self.at_once: Dict[Any, int] = {}
        self._back: Dict[str, List[Any]] = {}  # for each server, in the order of its loads

    def wait(self, load: Load) -> Load:
        """Return the load with a gradient that waits for the load's turn.

        The gradient waits for the values of the load that was sent ``WINDOW`` loads before, to the same server.
        """
        back = self._back.get(load.device, [])
        if len(back) < WINDOW:
            return load
        return dataclasses.replace(load, grad=tf.identity_n([load.grad, back[-WINDOW]])[0])

    def came_back(self, load: Load, came: Came) -> None:
        """Note the new values of a load."""
        self._back.setdefault(load.device, []).append(came.arrived)
        self.at_once[came.arrived] = 1
        self.values.update(came.values)
