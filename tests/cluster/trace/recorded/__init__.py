"""What TensorFlow measured in one step of ``worker:1`` of two, with two ps.

They trained ``tests/support/training/jobs/table.py``.

Lines of (device, operation, start, duration, label, bytes of its outputs), of some of the operations. Of the step on
TensorFlow 1.15 one transfer, the gradient of ``output``, is not recorded.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List


def node(name: str, label: str, start_us: int = 0, duration_us: int = 1, size: int = 0) -> Any:
    """What is read of a ``NodeExecStats`` with one output of ``size`` bytes."""
    described = SimpleNamespace(allocation_description=SimpleNamespace(requested_bytes=size))
    output = [SimpleNamespace(tensor_description=described)]
    times = {"all_start_micros": start_us, "all_end_rel_micros": duration_us}
    return SimpleNamespace(node_name=name, timeline_label=label, output=output, **times)


def devices(runtime: int) -> List[Any]:
    """``step_stats.dev_stats`` of that step on TensorFlow 1 or 2."""
    found: List[Any] = []
    for line in (Path(__file__).parent / f"tensorflow_{runtime}.jsonl").read_text().splitlines():
        device, name, start_us, duration_us, label, size = json.loads(line)
        if not found or found[-1].device != device:
            found.append(SimpleNamespace(device=device, node_stats=[]))
        found[-1].node_stats.append(node(name, label, start_us, duration_us, size))
    return found
