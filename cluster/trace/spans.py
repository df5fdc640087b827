"""Turn TensorFlow's measurements of a step into spans of time on the devices.

``tf.RunMetadata.step_stats`` has, for each device, the operations that ran there. A tensor that came over the network
is among the operations of the device that got it. It is a ``RecvTensor``, with a label such as
``[128B] [9.1Mb/s] edge_4_hidden from /job:ps/replica:0/task:1/device:CPU:0 to /job:worker/…``. The ``RecvTensor``
begins when the sender begins to send. Both runtimes write it so.
"""

import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

PULLS, COMPUTE, PUSHES, WAITING, OTHERS = "pulls", "compute", "pushes", "waiting", "other transfers"
_DEVICE = re.compile(r"^/job:(\w+)/(?:replica:\d+/)?task:(\d+)/(?:device:)?(\w+:\d+)$")
_SENT = re.compile(r"^\[[^]]*B\] .*?(?:edge_\d+_)?(\S+) from (\S+) to (\S+)$")
_WAITS = re.compile(r"Dequeue|TakeGradient")  # operations that last until somebody else has done his part
_OP = re.compile(r"^\S+ = (\w+)\((.*)\)$")
_RECEIVED = re.compile(r"(?<![^\s])([^\s^]\S*)_S\d+(?=,|$)")  # an input that came from another task


class Place(NamedTuple):
    """A device of a task: ``worker:1`` and ``CPU:0``."""

    task: str
    unit: str

    @property
    def is_ps(self) -> bool:
        return self.task.startswith("ps:")


class Transfer(NamedTuple):
    """A tensor on its way; ``tensor`` is the name of the operation that made it."""

    tensor: str
    size: int  # bytes
    source: Place
    target: Place


class Span(NamedTuple):
    """Something that lasted. Microseconds of the clock of ``place``, in a transfer of its target's."""

    place: Place
    lane: str  # PULLS, COMPUTE, …
    name: str
    start_us: int
    duration_us: int
    transfer: Optional[Transfer] = None
    variables: Sequence[str] = ()  # that are transferred, or whose gradients are


NamesOf = Callable[[Transfer], Sequence[str]]  # the variables whose values or gradients travel so


def spans(devices: Iterable[Any], payload: NamesOf) -> List[Span]:
    """Return the spans of what happened on the devices of tasks, each thing once.

    Transfers are at the device that got them.

    Args:
      devices: ``step_stats.dev_stats`` of every ``session.run`` of the step.
    """
    return [span for device in devices for span in _of_device(device, payload)]


def _of_device(device: Any, payload: NamesOf) -> Iterator[Span]:
    place = place_of(device.device)
    if place is None:  # what threads did, which 1.15 reports besides, for other sessions too
        return
    for node in device.node_stats:
        transfer = transfer_of(node) if node.node_name == "RecvTensor" else None
        if transfer is not None:
            yield _travelled(transfer, payload(transfer), node)
        elif node.node_name != "RecvTensor":
            start_us, duration_us = _times(node)
            yield Span(place, _lane(node.timeline_label), node.node_name, start_us, duration_us)


def count_unrecorded(devices: Iterable[Any]) -> int:
    """Count the transferred tensors that TensorFlow did not record.

    TensorFlow has every task switch recording on as the step begins, and waits for none of the tasks. So a tensor that
    a ps asked for before is missing. Some versions record a tensor only once that a device gets twice.
    """
    expected: Dict[str, Set[str]] = {}
    recorded: Dict[str, Set[str]] = {}
    for device in devices:
        for node in device.node_stats:
            found = _OP.match(node.timeline_label)
            if found:
                expected.setdefault(device.device, set()).update(_RECEIVED.findall(found[2]))
            elif node.node_name == "RecvTensor":
                sent = _SENT.match(node.timeline_label)
                recorded.setdefault(device.device, set()).update([sent[1]] if sent else [])
    return sum(len(names - recorded.get(device, set())) for device, names in expected.items())


def place_of(device: str) -> Optional[Place]:
    """Return the place that TensorFlow calls ``/job:ps/replica:0/task:1/device:CPU:0``; None for what is no device."""
    found = _DEVICE.match(device)
    return Place(f"{found[1]}:{found[2]}", found[3].upper()) if found else None


def transfer_of(node: Any) -> Optional[Transfer]:
    """Return the transfer of a ``RecvTensor``; None if its label cannot be read.

    The label rounds large sizes, so the size comes from the outputs.
    """
    found = _SENT.match(node.timeline_label)
    source, target = (place_of(found[2]), place_of(found[3])) if found else (None, None)
    if found is None or source is None or target is None:
        return None
    size = sum(each.tensor_description.allocation_description.requested_bytes for each in node.output)
    return Transfer(found[1], size, source, target)


def _travelled(transfer: Transfer, variables: Sequence[str], node: Any) -> Span:
    lane = OTHERS
    if variables and transfer.source.is_ps != transfer.target.is_ps:
        lane = PULLS if transfer.source.is_ps else PUSHES
    name = variables[0] + (f" and {len(variables) - 1} more" if variables[1:] else "") if variables else transfer.tensor
    start_us, duration_us = _times(node)
    return Span(transfer.target, lane, name, start_us, duration_us, transfer, tuple(variables))


def _lane(label: str) -> str:
    found = _OP.match(label)
    return WAITING if found and _WAITS.search(found[1]) else COMPUTE


def _times(node: Any) -> Tuple[int, int]:
    return node.all_start_micros, max(1, node.all_end_rel_micros)
