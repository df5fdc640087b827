"""Measure for how long training stands still while it is exported: make bench-export

Two ps and two workers on this machine fill an embedding table with ``--rows`` rows. The chief notes the time of every
step. Then ``launch export`` runs ``--times`` times. A pause is how much longer the longest step took than a usual one,
until the checkpoint is there. Beside it stands the longest of as many steps without an export.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import List, Set

from launch.agent.linux.ports import free_ports
from tests.benchmarks.drain import BATCH, INPUTS, Filling, up
from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

PATIENCE_S = 600.0
LOOK_S = 0.02
QUIET_S = 10.0
JOB = f"""{INPUTS}
import json, os, time

import numpy as np

def predict(ids):
    return tf.reduce_sum(embedding.lookup(embedding.table("rows", 16), ids), 1)

def model(ids, training, args):
    scores = predict(ids)
    if training and json.loads(os.environ.get("TF_CONFIG", "{{}}")).get("task") == {{"type": "worker", "index": 0}}:
        with tf.control_dependencies([tf.py_func(lambda: note(args["times"]), [], tf.int64)]):
            scores = tf.identity(scores)
    return tf.square(scores - 1.0)

def note(path):
    with open(path, "a") as file:
        print(time.time(), file=file)
    return np.int64(0)
"""


class Run(Filling):
    """A run in a folder of its own, whose chief notes when it takes a step."""

    def __init__(self, folder: Path, rows: int, batch: int):
        self.launch, self._times = Launcher(folder), folder / "times"
        (self.launch.file.parent / "noting.py").write_text(JOB)
        addresses = [f"localhost:{port}" for port in free_ports(4)]
        self.launch.write(
            command=None, restart=None, job="noting.py", args={"rows": rows, "times": str(self._times)},
            cluster={"ps": addresses[:2], "worker": addresses[2:]},
            train={"steps": 10**9, "batch_size": batch},
        )  # fmt: skip
        self._batch = batch

    def times(self) -> List[float]:
        """Return when the chief has taken its steps."""
        return [float(line) for line in self._times.read_text().splitlines()] if self._times.exists() else []

    def fill(self, rows: int) -> None:
        """Wait until the table has that many rows."""
        eventually("a full table", lambda: len(self.times()) * 2 * self._batch > rows, PATIENCE_S)

    def lengths(self, begin: float, end: float) -> List[float]:
        """Return how many ms each step took that ended between two times."""
        times = self.times()
        return [1000 * (now - before) for before, now in zip(times, times[1:]) if begin < now <= end]

    def _checkpoints(self) -> Set[str]:
        (folder,) = self.launch.workdir.glob("runs/*")
        return {path.name for path in folder.rglob("model-*.index") if path.parent.name == "checkpoint"}

    def export(self, folder: Path) -> float:
        """Export; return when the checkpoint was there."""
        exporting = self.launch.begin("export", str(folder))
        saved = self._checkpoints()
        while exporting.poll() is None and not self._checkpoints() - saved:
            time.sleep(LOOK_S)
        there = time.time()
        _, errors = exporting.communicate(timeout=PATIENCE_S)
        if exporting.returncode:
            raise RuntimeError(errors)
        return there


def main() -> int:
    """Print one line an export."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.exports", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    with up(
        lambda folder: Run(folder, asked.rows, asked.batch), asked.rows
    ) as run, tempfile.TemporaryDirectory() as folder:
        for number in range(asked.times):
            begin = time.time()
            time.sleep(QUIET_S)
            quiet = run.lengths(begin, begin + QUIET_S)
            begin = time.time()
            there = run.export(Path(folder) / str(number))
            meanwhile, usual = run.lengths(begin, there), statistics.median(quiet)
            print(
                f"a step {usual:.1f} ms, the longest of {len(quiet)} without an export {max(quiet):.1f} ms;"
                f" the checkpoint was there after {there - begin:.1f} s and {len(meanwhile)} steps,"
                f" the longest {max(meanwhile):.1f} ms: a pause of {(max(meanwhile) - usual) / usual:.2f} steps",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
