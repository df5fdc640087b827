"""Whether 16 bits on the wire change how a job learns: python -m tests.benchmarks.curves (about five minutes).

Trains `digits` and `recommend` with float32, bfloat16 and float16, each with the same seeds, by one worker and two
ps. The loss of a run is averaged over pieces of its steps. A line of the table shows one piece: the mean over the seeds
with float32, how far the seeds are apart, and how far off each other wire's mean is; the last is of held-out data.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

from cluster.job import load
from cluster.task import Train
from cluster.variables.layout import ITEM_BYTES
from tests.support.training.alone import joined

JOBS = {"digits": 300, "recommend": 400}  # and their steps
PIECES = 6
BATCH = 64


def main() -> None:
    """Reads the command line; prints a table for each job."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.curves", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="how many (5)")
    parser.add_argument("--one", nargs=3, metavar=("JOB", "WIRE", "SEED"), help="one run: its losses as JSON")
    asked = parser.parse_args()
    if asked.one:
        job, wire, seed = asked.one
        print(json.dumps(losses(job, wire, int(seed))))
        return
    for job in JOBS:
        print(
            table(job, {wire: [_run(job, wire, seed) for seed in range(asked.seeds)] for wire in ITEM_BYTES}),
            flush=True,
        )


def _run(job: str, wire: str, seed: int) -> List[float]:
    """In a process of its own, as a server of TensorFlow lasts as long as its process."""
    argv = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.curves", "--one", job, wire, str(seed)]
    ran = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found: List[float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def losses(name: str, wire: str, seed: int) -> List[float]:
    """The mean loss of each piece of a training, then that on held-out data."""
    args = {"seed": seed}
    job = load(name, Path(__file__).resolve().parents[2] / "jobs").with_args(args)
    replica, session = joined(job, Train(steps=JOBS[name], tower_batch_size=BATCH, towers=1, wire=wire), args)
    found = [replica.stepper.step(session)[1] for _ in range(JOBS[name])]
    evaluation = replica.model.evaluation
    held_out = evaluation.run(session)["loss"] if evaluation else float("nan")
    return [float(np.mean(piece)) for piece in np.array_split(found, PIECES)] + [float(held_out)]


def table(job: str, runs: Dict[str, List[List[float]]]) -> str:
    """Markdown: a line for each piece of the steps, and for held-out data."""
    plain, *others = ITEM_BYTES
    seeds = len(runs[plain])
    lines = [
        f"| {job}, {seeds} seeds | {plain}: mean | lowest to highest | "
        + " | ".join(f"{w}: off by" for w in others)
        + " |",
        "|---|---|---|" + "---|" * len(others),
    ]
    bounds = np.linspace(0, JOBS[job], PIECES + 1).astype(int)
    names = [f"steps {a + 1} to {b}" for a, b in zip(bounds, bounds[1:])] + ["held-out data"]
    for index, name in enumerate(names):
        of: Dict[str, Any] = {wire: np.array([run[index] for run in found]) for wire, found in runs.items()}
        off = " | ".join(f"{of[wire].mean() - of[plain].mean():+.4f}" for wire in others)
        lines.append(f"| {name} | {of[plain].mean():.4f} | {of[plain].min():.4f} to {of[plain].max():.4f} | {off} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
