"""Whether 16 bits on the wire change how a job learns: python -m tests.benchmarks.curves (about five minutes).

Trains `digits` and `recommend` with float32, bfloat16 and float16, each with the same seeds, by one worker and two
ps. The loss of a run is averaged over pieces of its steps. A line of the table shows one piece: the mean over the seeds
with float32, how far the seeds are apart, and how far off each other wire's mean is; the last is of held-out data.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, List

import numpy as np

from cluster.wire import NAMES

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
        print(table(job, {wire: [_run(job, wire, seed) for seed in range(asked.seeds)] for wire in NAMES}), flush=True)


def _run(job: str, wire: str, seed: int) -> List[float]:
    """In a process of its own, as a server of TensorFlow lasts as long as its process."""
    argv = [sys.executable, "-W", "ignore", "-m", "tests.benchmarks.curves", "--one", job, wire, str(seed)]
    ran = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    found: List[float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def losses(name: str, wire: str, seed: int) -> List[float]:
    """The mean loss of each piece of a training, then that on held-out data."""
    from cluster import server
    from cluster.crew import Member
    from cluster.engine import tf
    from cluster.job import load
    from cluster.replica import Builder
    from cluster.task import Task, Train
    from launch.agent.ports import free_ports

    ports = free_ports(3)
    cluster = {"ps": [f"localhost:{port}" for port in ports[:2]], "worker": [f"localhost:{ports[2]}"]}
    tasks = [Task("ps", 0, cluster), Task("ps", 1, cluster), Task("worker", 0, cluster)]
    servers = [server.start(task) for task in tasks]
    args = {"seed": seed}
    job = load(name, Path(__file__).resolve().parents[2] / "jobs").with_args(args)
    task = replace(tasks[-1], batch_size=BATCH)
    settings = Train(steps=JOBS[name], batch_size=BATCH, wire=wire)
    replica = Builder(job, task, settings, args, [Member(task, ["CPU:0"])]).build()
    with replica.graph.as_default():
        session = server.connect(task, servers[-1], replica.graph)
        session.run([tf.global_variables_initializer(), replica.start_input])
    replica.stepper.open(session)
    found = [replica.stepper.step(session)[1] for _ in range(JOBS[name])]
    held_out = replica.evaluation.run(session)["loss"] if replica.evaluation else float("nan")
    return [float(np.mean(piece)) for piece in np.array_split(found, PIECES)] + [float(held_out)]


def table(job: str, runs: Dict[str, List[List[float]]]) -> str:
    """Markdown: a line for each piece of the steps, and for held-out data."""
    plain, *others = NAMES
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
