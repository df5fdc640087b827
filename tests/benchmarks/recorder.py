"""Measure the cost of the flight recorder in a step: python -m tests.benchmarks.recorder

A worker and a ps on this machine train models, as real as any, while every call of the recorder is timed. The first
model has one number and almost no arithmetic: no step of a cluster is shorter. The chief is the worker, so every step
has the calls around a save, too. Medians count, since a busy machine interrupts some calls; timing a call is in them.
"""

import statistics
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple

import jobs.digits
from cluster.protocol.flight_recorder import FlightRecorder
from cluster.protocol.flight_records import FILE, SIZE, read_records
from cluster.runtime.tf_compat import tf
from tests.support.training.alone import train_alone

STEPS = 1500
CALLS = ("begin", "end", "end_pause")


class Cost(NamedTuple):
    """The median step in milliseconds, and the recorder's part of it in microseconds."""

    step_ms: float
    recorder_us: float

    @property
    def percent(self) -> float:
        """Return the recorder's part of a step, in percent."""
        return self.recorder_us / self.step_ms / 10


def smallest() -> ModuleType:
    """Return a job with one variable of one number."""
    job = ModuleType("smallest")
    source = {
        "inputs": lambda task, args: tf.data.Dataset.from_tensors({"x": tf.ones([1])}).repeat(),
        "model": lambda x: tf.square(x - tf.get_variable("only", [])),
        "optimizer": lambda args: tf.train.GradientDescentOptimizer(0.01),
    }
    vars(job).update(source, __file__=__file__)
    return job


def measured(job: ModuleType, args: Dict[str, Any], **settings: Any) -> Cost:
    """Train, and return the cost; every step counts but the first ones."""
    spent: Dict[str, List[float]] = {name: [] for name in CALLS}
    calls = {name: getattr(FlightRecorder, name) for name in CALLS}
    for name, call in calls.items():
        setattr(FlightRecorder, name, _timed(call, spent[name]))
    try:
        with tempfile.TemporaryDirectory() as folder:
            outcome = train_alone(job, Path(folder), args, steps=STEPS, **settings)
            assert outcome.succeeded, outcome.cause
            spans = read_records(Path(folder) / "worker.0" / FILE).spans
    finally:
        for name, call in calls.items():
            setattr(FlightRecorder, name, call)
    steps = [span for span in spans if span.phase == "step"]
    between = [after.ended - before.ended for before, after in zip(steps, steps[1:])]
    recorder_s = sum(statistics.median(each) * len(each) for each in spent.values() if each) / STEPS
    return Cost(1000 * statistics.median(between), 1e6 * recorder_s)


def _timed(call: Callable[..., Any], spent: List[float]) -> Callable[..., Any]:
    def timed(self: FlightRecorder, *args: Any, **named: Any) -> None:
        began = time.perf_counter()
        call(self, *args, **named)
        spent.append(time.perf_counter() - began)

    return timed


def main() -> None:
    """Print a table in Markdown."""
    cases = {
        "one number, synchronous": measured(smallest(), {}, batch_size=1),
        "one number, asynchronous": measured(smallest(), {}, batch_size=1, mode="async"),
        "`digits`, synchronous": measured(jobs.digits, {"hidden": 128}, batch_size=64),
    }
    print("| model | a step | recorder | share |\n|---|---:|---:|---:|")
    for name, cost in cases.items():
        print(f"| {name} | {cost.step_ms:.2f} ms | {cost.recorder_us:.1f} µs | {cost.percent:.2f} % |")
    print(f"\nfile: {SIZE:,} bytes for each task")


if __name__ == "__main__":
    main()
