"""Small numbers that many operations of a graph take, each made once on each device."""

from typing import Any, Dict, Tuple

from cluster.runtime.tf_compat import tf


class Constants:
    """Those of one graph."""

    def __init__(self) -> None:
        self._made: Dict[Tuple[int, str], Any] = {}

    def scalar(self, value: int, device: str) -> Any:
        """Return an int32 scalar on a device; it waits for nothing."""
        if (value, device) not in self._made:
            with tf.control_dependencies(None), tf.device(device):
                self._made[value, device] = tf.constant(value)
        return self._made[value, device]
