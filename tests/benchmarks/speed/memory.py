"""The most memory that the tasks of each role have held, as the kernel counts it."""

import json
import re
from pathlib import Path
from typing import Dict, Iterable, Iterator, Tuple

from tests.support.hosts import Host

_PEAK = re.compile(r"VmHWM:\s+(\d+) kB")
_MARK = "TF_CONFIG="


def peaks_mb(hosts: Iterable[Host]) -> Dict[str, float]:
    """Return the megabytes of the largest process that runs as ``chief``, ``worker`` and ``ps`` on these hosts."""
    peaks: Dict[str, float] = {}
    for host in hosts:
        for role, peak in _tasks(Path(f"/proc/{host.init()}/root/proc")):
            peaks[role] = max(peak, peaks.get(role, 0.0))
    return peaks


def _tasks(processes: Path) -> Iterator[Tuple[str, float]]:
    """The role and the peak of every process that has a place in a cluster."""
    for process in processes.glob("[0-9]*"):
        try:
            variables = (process / "environ").read_text().split("\0")
            peak = _PEAK.search((process / "status").read_text())
        except OSError:  # it has ended meanwhile
            continue
        config = next((each[len(_MARK) :] for each in variables if each.startswith(_MARK)), None)
        if config and peak:
            task = json.loads(config)["task"]
            is_chief = (task["type"], task["index"]) == ("worker", 0)
            yield "chief" if is_chief else task["type"], int(peak[1]) / 1000
