"""When a load may be sent: all go to their server in one order, and few of one server are under way at a time.

Without that all would be on their way at once, share the network, and arrive together at the end, when nothing is
left to be sent meanwhile.
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
        """The same load with a gradient that waits for its turn: for the values of what was sent a window before it."""
        back = self._back.get(load.device, [])
        if len(back) < WINDOW:
            return load
        return dataclasses.replace(load, grad=tf.identity_n([load.grad, back[-WINDOW]])[0])

    def came_back(self, load: Load, came: Came) -> None:
        """These are the new values of a load."""
        self._back.setdefault(load.device, []).append(came.arrived)
        self.at_once[came.arrived] = 1
        self.values.update(came.values)
