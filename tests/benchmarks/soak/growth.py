"""Samples of a long run, as rows of a table, and whatever has grown between them.

A sample has numbers by name. What comes and goes with its process (a task, an agent) has the age of that process in
its name: only values of about the same age are compared. What is bounded by design has its bound checked instead.
"""

import os
from typing import Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

MIB = 1024
AGES_S = (60.0, 180.0, 600.0)  # which divide processes by age


class Sample(NamedTuple):
    """One look at a run."""

    minute: int
    step: int
    fault: str
    values: Mapping[str, float]


# By the end of a name: how much more there may be in the last third of the samples than in the first.
MORE: Tuple[Tuple[str, float], ...] = (
    # Pools, which Python 3.7 fills before it uses a thread again: for hosts, and to resolve the name of the lead.
    ("launcher threads", 32), ("agent threads", 5 * (os.cpu_count() or 1)),
    ("launcher KiB in memory", 16 * MIB),  # over 500 runs, up and down between 47 and 59 MB
    ("task descriptors", 8), ("task threads", 8), ("task KiB", 48 * MIB),
    ("descriptors", 2), ("threads", 1), ("KiB in memory", 4 * MIB),
    ("files of the run", 16), ("KiB of the run", 256), ("files of code", 0), ("other files", 0), ("other KiB", 16),
    ("processes", 0),
)  # fmt: skip
# By name: how much there may ever be.
MOST: Mapping[str, float] = {
    "incidents": 13,  # the first, and the newest 12
    "status.json KiB": 128,
    "report.json KiB": 128,
    "agent.log KiB": 1024,
    "files of AutoGraph per attempt": 4,  # two sources of TensorFlow and what Python makes of them, unless it ends well
    "files per attempt": 3,  # its log, the times of its lines, and the chief's summaries
}


def age_class(age_s: float) -> str:
    """Return the words for the age of a process."""
    older = [f"from {age:.0f} s on" for age in AGES_S if age_s >= age]
    return older[-1] if older else "young"


def grown(samples: Sequence[Sample]) -> List[str]:
    """Return a sentence for whatever has grown, or is beyond its bound."""
    third = max(1, len(samples) // 3)
    early, late = _highest(samples[:third]), _highest(samples[-third:])
    found = [
        f"{name}: {early[name]:g} at most in the first {third} samples, {value:g} at most in the last {third};"
        f" {more:g} more are allowed"
        for name, value in sorted(late.items())
        for more in [_more(name)]
        if more is not None and name in early and value > early[name] + more
    ]
    highest = _highest(samples)
    beyond = [(name, highest[name], most) for name, most in MOST.items() if highest.get(name, 0) > most]
    return [*found, *(f"{name}: expected {most:g} at most, found {value:g}" for name, value, most in beyond)]


def _highest(samples: Sequence[Sample]) -> Dict[str, float]:
    found: Dict[str, float] = {}
    for sample in samples:
        for name, value in sample.values.items():
            found[name] = max(value, found.get(name, value))
    return found


def _more(name: str) -> Optional[float]:
    quantity = name.partition(", ")[0]
    return next((more for end, more in MORE if quantity.endswith(end)), None)


COLUMNS: Mapping[str, Tuple[str, ...]] = {
    "files of the run": ("files of the run", "KiB of the run"),
    "files of attempts": ("files of attempts", "KiB of attempts"),
    "files of code": ("files of code",),
    "other files": ("other files", "other KiB"),
    "processes": ("processes",),
    "launcher: descriptors, threads, KiB": (
        "launcher descriptors", "launcher threads", "launcher KiB in memory",
    ),
    "lead": ("h1 agent descriptors", "h1 agent threads", "h1 agent KiB in memory"),
    "keeper KiB": ("h1 keeper KiB in memory",),
    "chief": ("worker:0 task descriptors", "worker:0 task threads", "worker:0 task KiB"),
    "worker": ("worker:1 task descriptors", "worker:1 task threads", "worker:1 task KiB"),
    "ps": ("ps:0 task descriptors", "ps:0 task threads", "ps:0 task KiB"),
    "status.json, report.json KiB": ("status.json KiB", "report.json KiB"),
    "agent.log KiB": ("agent.log KiB",),
    "incidents": ("incidents",),
}  # fmt: skip


def head() -> List[str]:
    """Return the first lines of the table."""
    names = ["minute", "step", *COLUMNS, "fault"]
    return [f"| {' | '.join(names)} |", f"|{'---:|' * len(names)}"]


def row(sample: Sample) -> str:
    """Return the line of a sample."""
    cells = [", ".join(_shown(sample.values, name) for name in names) for names in COLUMNS.values()]
    return f"| {sample.minute} | {sample.step} | {' | '.join(cells)} | {sample.fault} |"


def _shown(values: Mapping[str, float], quantity: str) -> str:
    found = [value for name, value in values.items() if name.partition(", ")[0] == quantity]
    return f"{max(found):.0f}" if found else "–"
