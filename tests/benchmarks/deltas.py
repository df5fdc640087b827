"""Follow a run that trains by deltas, and compare each version with the run's: python -m tests.benchmarks.deltas

Two ps and two workers on this machine fill an embedding table with ``--rows`` rows; then ids come by a power law, and
some are new. Every ``--every`` seconds ``launch export --since`` fetches a delta. A model in numpy and a SavedModel in
TensorFlow apply it. Every row of the numpy model must have the bits of the run's checkpoint; predictions of the
SavedModel for known and unknown ids must be within 1e-6 of those of its rows. Now and then the seed loses a delta, or
applies one twice: both must be refused, and fetched again.
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List

import numpy as np

from cluster.errors import DeltaError
from cluster.recommend.serving import ServedModel, next_delta
from cluster.recommend.serving.loaded_model import LoadedModel
from cluster.recommend.tables.stored_tables import StoredRows, stored_tables
from cluster.runtime.tf_compat import tf
from launch.agent.linux.sockets import free_ports
from tests.benchmarks.drain import up
from tests.benchmarks.exports import Run as ExportedRun
from tests.support.launch.launcher import Launcher

WIDTH, BATCH = 16, 4096
JOB = f"""
import time
import tensorflow.compat.v1 as tf
from cluster import embedding

def inputs(task, args):
    size, rows = task.batch_size, args["rows"]
    def batch(index):
        first = (index * task.num_workers + task.worker_index) * size
        drawn = tf.random.stateless_uniform([size], tf.stack([index, task.worker_index]), dtype=tf.float64) ** 4
        known = tf.cast(drawn * rows, tf.int64)
        later = tf.concat([known[:-8], first + tf.range(size - 8, size, dtype=tf.int64)], 0)
        return {{"ids": tf.cond(first < rows, lambda: first + tf.range(size, dtype=tf.int64), lambda: later)}}
    def rest(batch):  # the export needs processors, too
        with tf.control_dependencies([tf.py_func(lambda: time.sleep(args["rest_ms"] / 1000), [], [])]):
            return {{"ids": tf.identity(batch["ids"])}}
    return tf.data.Dataset.range(1 << 40).map(batch).map(rest)

def optimizer(args):
    return tf.train.AdagradOptimizer(0.1)

def predict(ids):
    rows = embedding.lookup(embedding.table("rows", {WIDTH}), ids)
    return tf.reduce_sum(rows, 1) * tf.get_variable("w", [], initializer=tf.ones_initializer())

def model(ids):
    return tf.square(predict(ids) - 1.0)
"""


class Run(ExportedRun):
    """A run in a folder of its own."""

    def __init__(self, folder: Path, rows: int, rest_ms: float):
        self.launch = Launcher(folder)
        self.folder, self._batch = folder, BATCH
        (self.launch.file.parent / "fill.py").write_text(JOB)
        addresses = [f"localhost:{port}" for port in free_ports(4)]
        checkpoint = {"keep": 5, "every_s": 7200, "delta_every_s": 3600}  # else an export alone saves
        self.launch.write(
            command=None, restart=None, job="fill.py", args={"rows": rows, "rest_ms": rest_ms},
            cluster={"ps": addresses[:2], "worker": addresses[2:]},
            train={"steps": 10**9, "batch_size": BATCH, "checkpoint": checkpoint},
        )  # fmt: skip

    def exported(self, *argv: str) -> float:
        """Run ``launch export``, and return its seconds."""
        began = time.monotonic()
        ran = self.launch("export", *argv)
        if ran.returncode:
            raise RuntimeError(ran.stderr)
        return time.monotonic() - began

    def checkpoint(self, step: int) -> str:
        """Return the path of the checkpoint of a step."""
        (path,) = (each for each in self.launch.workdir.rglob(f"model-{step}.index") if each.parent.name != "since")
        return str(path)[: -len(".index")]


class Served:
    """The two models, which follow the deltas in a folder.

    ``seconds`` has lists of times by what took them; ``refused`` counts deltas that did not follow.
    """

    def __init__(self, run: Run, folder: Path):
        self._run, self._deltas = run, folder / "deltas"
        self.seconds: Dict[str, List[float]] = {"export": [], "apply (numpy)": [], "apply (TensorFlow)": []}
        self.rows: List[int] = []
        self.refused = 0
        run.exported(str(folder / "served"))
        self.loaded = LoadedModel(folder / "served")
        run.exported(str(self._deltas), "--since", "0", "--checkpoint", self.loaded.version.partition("-")[0])
        self.model = ServedModel(next_delta(self._deltas, "0") or "")

    def _fetch(self, since: str) -> Path:
        self.seconds["export"].append(self._run.exported(str(self._deltas), "--since", since))
        path = next_delta(self._deltas, since)
        assert path is not None
        return path

    def _apply(self, path: Path) -> None:
        for apply, name in ((self.model.apply, "apply (numpy)"), (self.loaded.apply, "apply (TensorFlow)")):
            began = time.monotonic()
            apply(path)
            self.seconds[name].append(time.monotonic() - began)

    def advance(self, fault: str) -> None:
        """Take the next delta. ``fault``: "lost" loses one and then notices it, "doubled" applies one twice."""
        path = self._fetch(self.model.version)
        if fault == "lost":
            path.unlink()
            self._refuse(self._fetch(path.name.partition("..")[2][: -len(".npz")]))
            path = self._fetch(self.model.version)
        self._apply(path)
        if fault == "doubled":
            self._refuse(path)
        for old in self._deltas.glob("*.npz"):
            old.unlink()

    def _refuse(self, path: Path) -> None:
        for apply in (self.model.apply, self.loaded.apply):
            try:
                apply(path)
            except DeltaError:
                self.refused += 1
            else:
                raise AssertionError(f"{path} was applied")

    def compare(self) -> None:
        """Compare both models with the run's checkpoint of their version. Raises AssertionError."""
        reader = tf.train.load_checkpoint(self._run.checkpoint(int(self.model.version.partition("-")[0])))
        stored = StoredRows(reader, stored_tables(reader)["rows"], 0)
        ids, begin = stored.in_parts, 0
        self.rows.append(len(ids))
        assert self.model.sizes == {"rows": len(ids)}
        for rows in stored.parts():
            some = slice(begin, begin + len(rows))
            np.testing.assert_array_equal(self.model.rows("rows", ids[some]), rows)
            begin += len(rows)
        asked = np.random.RandomState(begin).choice(ids, 2000)
        asked = np.concatenate([asked, -1 - asked])  # and as many ids without a row
        wanted = self.model.rows("rows", asked).sum(1) * self.model.variables["w"]
        np.testing.assert_array_equal(self.model.variables["w"], reader.get_tensor("w"))
        np.testing.assert_allclose(self.loaded.predict(ids=asked)["predictions"], wanted, atol=1e-6)


def main() -> int:
    """Print a line for each version, and one for all."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.deltas", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--every", type=float, default=30.0, help="seconds")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--rest", type=float, default=50.0, help="ms between two batches of a worker")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    chance = random.Random(asked.seed)
    with up(
        lambda folder: Run(folder, asked.rows, asked.rest), asked.rows
    ) as run, tempfile.TemporaryDirectory() as folder:
        served, until = Served(run, Path(folder)), time.monotonic() + 60 * asked.minutes
        while time.monotonic() < until:
            next_at = time.monotonic() + asked.every
            served.advance(chance.choices(["", "lost", "doubled"], [6, 1, 1])[0])
            served.compare()
            print(f"{served.model.version}: {served.rows[-1]:,} rows equal", flush=True)
            time.sleep(max(0.0, next_at - time.monotonic()))
    print(
        f"{len(served.rows)} versions were the run's to the bit; {served.refused} deltas that did not follow, refused"
    )
    for name, took in served.seconds.items():
        print(f"{name}: median {statistics.median(took):.2f} s, most {max(took):.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
