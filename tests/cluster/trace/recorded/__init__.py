"""What TensorFlow measured in one step of ``worker:1`` of two, with two ps, training ``tests/cluster/jobs/table.py``.

Lines of (device, operation, start, duration, label), of some of the operations. Of the step on TensorFlow 1.15 one
transfer, the gradient of ``output``, is not recorded.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, List


def devices(runtime: int) -> List[Any]:
    """``step_stats.dev_stats`` of that step on TensorFlow 1 or 2."""
    found: List[Any] = []
    for line in (Path(__file__).parent / f"tensorflow_{runtime}.jsonl").read_text().splitlines():
        device, name, start_us, duration_us, label = json.loads(line)
        if not found or found[-1].device != device:
            found.append(SimpleNamespace(device=device, node_stats=[]))
        node = {"node_name": name, "timeline_label": label}
        node_stats = SimpleNamespace(all_start_micros=start_us, all_end_rel_micros=duration_us, **node)
        found[-1].node_stats.append(node_stats)
    return found
