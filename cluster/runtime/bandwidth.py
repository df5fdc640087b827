"""Measure the speed of the network between a worker and the parameter servers.

The measurement sends values over that network.
"""

import time
from typing import Any, NamedTuple, Tuple

from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf

_FIRST, _MOST = 1 << 14, 1 << 22  # values that each server sends
_ENOUGH_S = 0.05
_TIMES = 5
_BYTES = 4  # of a value


class Speed(NamedTuple):
    """The speed at which a worker receives from the servers.

    ``busy`` is the part of the time in which receiving took a processor. Near 1, the processor is the limit.
    """

    bytes_per_s: float
    busy: float


class BandwidthProbe:
    """Measure the network in the current graph: every server sends to the worker at once.

    Each server sends the same number of values.

    Args:
      host: the device of the worker's memory.
    """

    def __init__(self, num_ps: int, host: str):
        self._num_ps = num_ps
        self._values = tf.placeholder(tf.int64, [])
        self._received = tf.stack([self._receive(index, host) for index in range(num_ps)])

    def _receive(self, server: int, host: str) -> Any:
        with tf.device(ps_device(server)):
            sent = tf.fill([self._values], 1.0)
        with tf.device(host):
            return sent[0]  # needs all of them

    def measure(self, session: Any) -> Speed:
        """Send more and more values, until sending takes long enough to be timed."""
        self._timed(session, 1)  # connects
        values = _FIRST
        while values < _MOST and self._timed(session, values)[0] < _ENOUGH_S:
            values *= 4
        # Others build their graphs meanwhile, maybe on this host: the best of some is what the network can do.
        seconds, processor_s = min(self._timed(session, values) for _ in range(_TIMES))
        return Speed(self._num_ps * values * _BYTES / seconds, min(1.0, processor_s / seconds))

    def _timed(self, session: Any, values: int) -> Tuple[float, float]:
        start, processor = time.monotonic(), time.process_time()
        session.run(self._received, {self._values: values})
        return time.monotonic() - start, time.process_time() - processor
