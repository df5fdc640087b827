"""Synchronous training of some workers, in true time, as each records it by the clock of its own host."""

from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from launch.agent.wire.flight import Current, Flight
from launch.status.run import RunStatus
from launch.timeline.clock_shifts import ClockShift
from launch.timeline.flights import HostSpans, TimeLine, time_line
from tests.support.launch.statuses import status, task

BEGAN = 1_764_000_000.0  # true time
LATENCY_S = 0.002  # between the end of a step and its end at a worker, at least
STEP_S = 0.1


class Recording:
    """The flights of workers, one on each host; worker n is on the host ``gpuN``.

    Args:
      ahead_s: by how much each host's clock is ahead of the true time.
      parts: whether steps wait for each ps by itself, as overlapped ones do.
    """

    def __init__(self, ahead_s: Sequence[float], parts: bool = False):
        self.ahead_s, self.parts = ahead_s, parts
        self.now = BEGAN
        self.step = 0
        self.spans: List[List[Dict[str, Any]]] = [[] for _ in ahead_s]
        self.signs: Dict[int, Current] = {}

    def take(self, steps: int, work_s: Callable[[int, int], float] = lambda worker, step: STEP_S) -> "Recording":
        """Take steps, in which each worker works so long before it gives its gradient."""
        for _ in range(steps):
            self.step += 1
            began = [spans[-1]["ended"] if spans else self.now for spans in self.spans]
            given = [start + work_s(worker, self.step) for worker, start in enumerate(began)]
            for worker, spans in enumerate(self.spans):
                ended = max(given) + LATENCY_S * (1 + worker)
                spans.append(self.span("step", began[worker], ended, ended - given[worker]))
            self.now = max(spans[-1]["ended"] for spans in self.spans)
        return self

    def span(self, phase: str, began: float, ended: float, waited_s: Optional[float] = None) -> Dict[str, Any]:
        parts = self.parts and waited_s is not None
        return {
            "attempt": 0, "phase": phase, "step": self.step, "began": began, "ended": ended, "waited_s": waited_s,
            "longest_ps": 1 if parts else None, "longest_s": waited_s if parts else None, "whole": True,
        }  # fmt: skip

    def pause(self, worker: int, phase: str, seconds: float) -> "Recording":
        """Let a worker do something else before its next step."""
        began = self.spans[worker][-1]["ended"] if self.spans[worker] else self.now
        self.spans[worker].append(self.span(phase, began, began + seconds))
        return self

    def pause_all(self, phase: str, seconds: float) -> "Recording":
        for worker in range(len(self.spans)):
            self.pause(worker, phase, seconds)
        return self

    def sign(self, worker: int, phase: str, phase_s: float, owes: Optional[bool] = None, **more: float) -> None:
        self.signs[worker] = Current(phase, phase_s, owes, **more)

    def flight(self, worker: int) -> Flight:
        ahead_s, spans = self.ahead_s[worker], self.spans[worker]
        keys = [key for key in self.span("step", 0, 0) if key not in ("ended", "began")]
        columns: Dict[str, Any] = {key: [span[key] for span in spans] for key in keys}
        began = [span["began"] + ahead_s for span in spans]
        took_s = [span["ended"] - span["began"] for span in spans]
        flight = Flight(f"worker:{worker}", self.now + ahead_s, began=began, took_s=took_s)
        return replace(flight, now=self.signs.get(worker), **columns)

    def status(self, states: Mapping[int, str] = {}) -> RunStatus:
        workers = [task(f"worker:{n}@gpu{n}", state=states.get(n, "running")) for n in range(len(self.ahead_s))]
        return status(task("ps:0@cpu0"), *workers)

    def line(
        self, exchanged: Mapping[str, ClockShift] = {}, states: Mapping[int, str] = {}, common_steps: bool = True
    ) -> TimeLine:
        """The time line of all hosts."""
        answers = {
            f"gpu{worker}": HostSpans([self.flight(worker)], exchanged.get(f"gpu{worker}"))
            for worker in range(len(self.ahead_s))
        }
        return time_line(answers, self.status(states), "gpu0", common_steps)
