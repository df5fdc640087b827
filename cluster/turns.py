"""When a load may be sent: all go to their server in one order, and few of one server are under way at a time.

Without that all would be on their way at once, share the network, and arrive together at the end, when nothing is
left to be sent meanwhile.
"""

import dataclasses
from typing import Any, Dict, List

from cluster.engine import tf
from cluster.exchange import Load

WINDOW = 3  # loads of one server that are under way: one there, one back, and one as a reserve


class Turns:
    """The turns of one worker's loads, in the order in which they are asked for.

    ``brought`` are the operations that lay new values down at the worker, for each server in the order of its loads.
    """

    def __init__(self) -> None:
        self.brought: Dict[str, List[Any]] = {}

    def wait(self, load: Load) -> Load:
        """The same load with a gradient that waits for its turn: for the values of what was sent a window before it."""
        sent = self.brought.get(load.device, [])
        turn = [sent[-WINDOW]] if len(sent) >= WINDOW else []
        with tf.control_dependencies(turn):
            return dataclasses.replace(load, grad=tf.identity(load.grad))

    def came_back(self, load: Load, brought: Any) -> None:
        """The new values of a load are there once ``brought`` has run."""
        self.brought.setdefault(load.device, []).append(brought)

    def all_brought(self) -> List[Any]:
        """The operations that lay everything down."""
        return [brought for of_server in self.brought.values() for brought in of_server]
