"""Turn TensorFlow's measurements of a step into spans of time on the devices, all on the worker's clock.

For each device, ``tf.RunMetadata.step_stats`` has the operations that ran on it. A tensor that arrived over the network
is among the operations of the receiving device. The operation is a ``RecvTensor``, with a label such as ``[128B]
[9.1Mb/s] edge_4_hidden from /job:ps/replica:0/task:1/device:CPU:0 to /job:worker/…``. The ``RecvTensor`` begins when
the sender begins to send. Both runtimes write this format.

The clocks of hosts differ. No tensor arrives before it was created. From the transfers, the module converts the times
of other hosts to the worker's clock.
"""

import re
from typing import Any, Callable, Dict, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Set, Tuple

PULLS, COMPUTE, PUSHES, WAITING, OTHERS = "pulls", "compute", "pushes", "waiting", "other transfers"
_DEVICE = re.compile(r"^/job:(\w+)/(?:replica:\d+/)?task:(\d+)/(?:device:)?(\w+:\d+)$")
_SENT = re.compile(r"^\[[^]]*B\] .*?(?:edge_\d+_)?(\S+) from (\S+) to (\S+)$")
_WAITS = re.compile(r"Dequeue|TakeGradient")  # operations that wait for another task
_OP = re.compile(r"^\S+ = (\w+)\((.*)\)$")
_RECEIVED = re.compile(r"(?<![^\s])([^\s^]\S*)_S\d+(?=,|$)")  # an input from another task


class DevicePlace(NamedTuple):
    """A device of a task, such as ``worker:1`` and ``CPU:0``."""

    task: str
    unit: str

    @property
    def is_ps(self) -> bool:
        return self.task.startswith("ps:")


class Transfer(NamedTuple):
    """A sent tensor; ``tensor`` is the name of the operation that created it."""

    tensor: str
    size: int  # bytes
    source: DevicePlace
    target: DevicePlace


class TraceSpan(NamedTuple):
    """An activity with a duration, in microseconds of the clock of ``place``, which is the target of a transfer."""

    place: DevicePlace
    lane: str  # PULLS, COMPUTE, …
    name: str
    start_us: int
    duration_us: int
    transfer: Optional[Transfer] = None
    variables: Sequence[str] = ()  # that are transferred, or whose gradients are transferred


NamesOf = Callable[[Transfer], Sequence[str]]  # the variables whose values or gradients a transfer contains


def spans(devices: Iterable[Any], payload: NamesOf) -> List[TraceSpan]:
    """Return the spans on the devices of tasks, each activity once.

    Transfers are on the receiving device.

    Args:
      devices: ``step_stats.dev_stats`` of every ``session.run`` of the step.
    """
    return [span for device in devices for span in _of_device(device, payload)]


def _of_device(device: Any, payload: NamesOf) -> Iterator[TraceSpan]:
    place = place_of(device.device)
    if place is None:  # activities of threads, which 1.15 also reports, for other sessions too
        return
    for node in device.node_stats:
        transfer = transfer_of(node) if node.node_name == "RecvTensor" else None
        if transfer is not None:
            yield _travelled(transfer, payload(transfer), node)
        elif node.node_name != "RecvTensor":
            start_us, duration_us = _times(node)
            yield TraceSpan(place, _lane(node.timeline_label), node.node_name, start_us, duration_us)


def count_unrecorded(devices: Iterable[Any]) -> int:
    """Count the transferred tensors that TensorFlow did not record.

    Every task starts to record as the step begins, but TensorFlow does not wait for the tasks. So the record lacks a
    tensor that a ps requested earlier. Some versions record only once a tensor that a device receives twice.
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


def place_of(device: str) -> Optional[DevicePlace]:
    """Return the place that TensorFlow names ``/job:ps/replica:0/task:1/device:CPU:0``; None for any other name."""
    found = _DEVICE.match(device)
    return DevicePlace(f"{found[1]}:{found[2]}", found[3].upper()) if found else None


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


def _travelled(transfer: Transfer, variables: Sequence[str], node: Any) -> TraceSpan:
    lane = OTHERS
    if variables and transfer.source.is_ps != transfer.target.is_ps:
        lane = PULLS if transfer.source.is_ps else PUSHES
    name = variables[0] + (f" and {len(variables) - 1} more" if variables[1:] else "") if variables else transfer.tensor
    start_us, duration_us = _times(node)
    return TraceSpan(
        place=transfer.target,
        lane=lane,
        name=name,
        start_us=start_us,
        duration_us=duration_us,
        transfer=transfer,
        variables=tuple(variables),
    )


def _lane(label: str) -> str:
    found = _OP.match(label)
    return WAITING if found and _WAITS.search(found[1]) else COMPUTE


def _times(node: Any) -> Tuple[int, int]:
    return node.all_start_micros, max(1, node.all_end_rel_micros)


class ClockCorrection(NamedTuple):
    """The correction of a task's times, and the possible error of the correction.

    Add ``shift_us`` to the times of the task. Both are 0 where no correction is needed.
    """

    shift_us: int
    uncertain_us: int


def clocks(found: Iterable[TraceSpan], own: str) -> Dict[str, ClockCorrection]:
    """Return the clock correction of every task except ``own``: all times are converted to the clock of ``own``.

    A tensor from ``own`` limits how far its receiver's clock can lead, and a tensor to ``own`` how far its sender's
    clock can lag. If both limits allow 0, the shift is 0. Otherwise the shift is the middle of the limits.
    """
    found = list(found)
    least, most = _bounds_of_shifts(found, own)
    others = {task for span in found for task in _tasks_of(span)} - {own}
    return {task: _shift_between(least.get(task, []), most.get(task, [])) for task in sorted(others)}


def on_one_clock(found: Iterable[TraceSpan], by_task: Dict[str, ClockCorrection]) -> List[TraceSpan]:
    """Return the spans ``found`` with their times converted to the worker's clock, by the corrections ``by_task``."""
    still = ClockCorrection(0, 0)
    return [span._replace(start_us=span.start_us + by_task.get(span.place.task, still).shift_us) for span in found]


def _tasks_of(span: TraceSpan) -> Tuple[str, ...]:
    return (span.place.task, span.transfer.source.task) if span.transfer else (span.place.task,)


def _bounds_of_shifts(found: List[TraceSpan], own: str) -> Tuple[Dict[str, List[int]], Dict[str, List[int]]]:
    """Return the lower and the upper bounds of each task's shift."""
    made: Dict[Tuple[str, str], int] = {}  # not earlier than the begin of the operation
    for span in reversed(found):
        if span.transfer is None:
            made[span.place.task, span.name] = span.start_us
    least: Dict[str, List[int]] = {}
    most: Dict[str, List[int]] = {}
    for span in found:
        transfer = span.transfer
        began = made.get((transfer.source.task, transfer.tensor)) if transfer else None
        if transfer is None or began is None or transfer.source.task == transfer.target.task:
            continue
        took = span.start_us + span.duration_us - began
        if transfer.source.task == own:
            least.setdefault(transfer.target.task, []).append(-took)
        elif transfer.target.task == own:
            most.setdefault(transfer.source.task, []).append(took)
    return least, most


def _shift_between(least: List[int], most: List[int]) -> ClockCorrection:
    low, high = max(least, default=None), min(most, default=None)
    if (low is None or low <= 0) and (high is None or high >= 0):
        return ClockCorrection(0, 0)
    known = [bound for bound in (low, high) if bound is not None]
    return ClockCorrection(sum(known) // len(known), abs(known[-1] - known[0]) // 2)
