"""Model parallelism: the layers of one copy of the model on several devices.

A model states the position of a layer in the model, and not the device that runs the layer:

    def model(x, y):
        for index in range(8):
            with stage(index, of=8):
                x = layer(x)

With two devices for each tower, layers 0 to 3 are built on the first device and layers 4 to 7 on the second. With one
device, or outside every tower, ``stage`` does nothing.
"""

import contextlib
from typing import Any, Callable, Iterator, Sequence, Union

from cluster.runtime.tf_compat import tf

Device = Union[str, Callable[[Any], str]]  # any argument of tf.device
_OPEN = "cluster/open_towers"  # the collection of the towers being built in a graph, the innermost last


@contextlib.contextmanager
def tower_on(devices: Sequence[Device]) -> Iterator[None]:
    """Build operations inside the context on the first of ``devices``, the devices of one tower.

    A ``stage`` inside the context may choose another of these devices.
    """
    open_towers = tf.get_collection_ref(_OPEN)
    open_towers.append(devices)
    try:
        with tf.device(devices[0]):
            yield
    finally:
        open_towers.pop()


@contextlib.contextmanager
def stage(index: int, of: int) -> Iterator[None]:
    """Build operations inside the context on the device for part ``index`` of the model's ``of`` consecutive parts.

    Each device of the tower has a share of consecutive parts. Outside every tower, the context has no effect.

    Raises:
      ValueError: ``index`` is not from 0 to ``of`` - 1.
    """
    if not 0 <= index < of:
        raise ValueError(f"stage {index}: expected a number from 0 to {of - 1} (of={of})")
    open_towers = tf.get_collection(_OPEN)
    if not open_towers:
        yield
        return
    devices = open_towers[-1]
    with tf.device(devices[index * len(devices) // of]):
        yield
