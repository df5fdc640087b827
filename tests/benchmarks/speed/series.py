"""What the plots show: step times by something that grows, each way a line."""

from typing import Callable, Dict, List, Sequence, Tuple

from tests.benchmarks.speed.cases import WAYS, Case
from tests.benchmarks.speed.report import Found, Result

Line = List[Tuple[float, float]]


def step_times(results: Sequence[Result], cases: Sequence[Case], across: Callable[[Case], float]) -> Dict[str, Line]:
    """For each way the points (``across`` of a case, its median step time in ms) that were measured, in their order."""
    lines: Dict[str, Line] = {}
    for way in WAYS.values():
        found = [(across(case), Found.of(results, case, way)) for case in cases]
        points = sorted((at, each.median_ms) for at, each in found if each is not None)
        if points:
            lines[way.name] = points
    return lines


def bound(cases: Sequence[Case], across: Callable[[Case], float]) -> Line:
    """The same points for what float32 cannot be faster than; cases without a limit have none."""
    bounds = [(across(case), case.bound_ms()) for case in cases]
    return sorted((at, bound_ms) for at, bound_ms in bounds if bound_ms is not None)


def over_bound(results: Sequence[Result], cases: Sequence[Case]) -> Dict[str, Dict[str, float]]:
    """For each case, by name, and each way that was measured on it: the median step time over the float32 bound."""
    ratios: Dict[str, Dict[str, float]] = {}
    for case in cases:
        for way in WAYS.values():
            found, bound_ms = Found.of(results, case, way), case.bound_ms()
            if found is not None and bound_ms is not None:
                ratios.setdefault(case.name, {})[way.name] = found.median_ms / bound_ms
    return ratios
