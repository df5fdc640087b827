"""Measure the cost of the flight recorder and of the learning curve in a step: python -m tests.benchmarks.recorder

A worker and a ps on this machine train models, as real as any, while every call of both is timed. The first
model has one number and almost no arithmetic: no step of a cluster is shorter. The chief is the worker, so every step
has the calls around a save, too. Medians count, since a busy machine interrupts some calls; timing a call is in them.
"""

import statistics
import tempfile
import time
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import jobs.digits
from cluster.protocol.flight_recorder import FlightRecorder
from cluster.protocol.flight_records import FILE, SIZE, read_records
from cluster.protocol.loss_points import LossPoints
from cluster.runtime.tf_compat import tf
from tests.support.training.alone import train_alone

STEPS = 1500
CALLS = {FlightRecorder: ("begin", "end", "end_pause"), LossPoints: ("add", "fields", "interrupt")}


class Cost(NamedTuple):
    """The median step in milliseconds, and the parts of the recorder and of the curve in microseconds."""

    step_ms: float
    recorder_us: float
    curve_us: float

    def percent(self, part_us: float) -> float:
        """Return a part of a step, in percent."""
        return part_us / self.step_ms / 10


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
    calls = {(kind, name): getattr(kind, name) for kind, names in CALLS.items() for name in names}
    spent: Dict[Tuple[type, str], List[float]] = {called: [] for called in calls}
    for (kind, name), call in calls.items():
        setattr(kind, name, _timed(call, spent[kind, name]))
    try:
        with tempfile.TemporaryDirectory() as folder:
            outcome = train_alone(job, Path(folder), args, steps=STEPS, **settings)
            assert outcome.succeeded, outcome.cause
            spans = read_records(Path(folder) / "worker.0" / FILE).spans
    finally:
        for (kind, name), call in calls.items():
            setattr(kind, name, call)
    steps = [span for span in spans if span.phase == "step"]
    between = [after.ended - before.ended for before, after in zip(steps, steps[1:])]
    recorder_us, curve_us = (
        sum(
            1e6 * statistics.median(times) * len(times)
            for called, times in spent.items()
            if called[0] is kind and times
        )
        / STEPS
        for kind in CALLS
    )
    return Cost(1000 * statistics.median(between), recorder_us, curve_us)


def _timed(call: Callable[..., Any], spent: List[float]) -> Callable[..., Any]:
    def timed(self: Any, *args: Any, **named: Any) -> Any:
        began = time.perf_counter()
        result = call(self, *args, **named)
        spent.append(time.perf_counter() - began)
        return result

    return timed


def main() -> None:
    """Print a table in Markdown."""
    cases = {
        "one number, synchronous": measured(smallest(), {}, batch_size=1),
        "one number, asynchronous": measured(smallest(), {}, batch_size=1, mode="async"),
        "`digits`, synchronous": measured(jobs.digits, {"hidden": 128}, batch_size=64),
    }
    print("| model | a step | recorder | share | curve | share |\n|---|---:|---:|---:|---:|---:|")
    for name, cost in cases.items():
        parts = [f"{part:.1f} µs | {cost.percent(part):.2f} %" for part in (cost.recorder_us, cost.curve_us)]
        print(f"| {name} | {cost.step_ms:.2f} ms | {' | '.join(parts)} |")
    print(f"\nfile: {SIZE:,} bytes for each task")


if __name__ == "__main__":
    main()
