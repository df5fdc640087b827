"""Measure for how long training stands still while ps join a run: make bench-drain

Two ps and two workers on this machine fill an embedding table with ``--rows`` rows. Then two spares join, and leave
again. A pause is the time from the chief's last step with the old ps until its first one with the new ps. The rate
is compared with that of a run which begins with four ps.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, TypeVar

from launch.agent.linux.sockets import free_ports
from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

BATCH = 4096
RATE_S = 20.0
PATIENCE_S = 600.0
LOOK_S = 0.02
INPUTS = """
import tensorflow.compat.v1 as tf
from cluster import embedding

def inputs(task, args):
    def batch(index):
        first = (index * task.num_workers + task.worker_index) * task.batch_size
        return {"ids": (first + tf.range(task.batch_size, dtype=tf.int64)) % args["rows"]}
    return tf.data.Dataset.range(1 << 40).map(batch)

def optimizer(args):
    return tf.train.AdagradOptimizer(0.1)
"""  # every id of a table comes once before any comes again
JOB = f"""{INPUTS}
def model(ids):
    rows = embedding.lookup(embedding.table("rows", 16), ids)
    return tf.square(tf.reduce_sum(rows, 1) - 1.0)
"""


class Filling:
    """A run that fills a table."""

    launch: Launcher

    def fill(self, rows: int) -> None:
        """Wait until the table has that many rows."""
        raise NotImplementedError


class Run(Filling):
    """A run in a folder of its own, with ``ps`` of four servers; the others are spares."""

    def __init__(self, folder: Path, ps: int, rows: int):
        self.launch = Launcher(folder)
        (self.launch.file.parent / "fill.py").write_text(JOB)
        addresses = [f"localhost:{port}" for port in free_ports(6)]
        self.launch.write(
            command=None, restart=None, job="fill.py", elastic={"min_workers": 1}, args={"rows": rows},
            cluster={"ps": addresses[:ps], "worker": addresses[4:]}, spares=addresses[ps:4] or None,
            train={"steps": 10**9, "batch_size": BATCH},
        )  # fmt: skip

    def status(self) -> Dict[str, Any]:
        """Return the status as the lead's agent wrote it last."""
        (path,) = self.launch.workdir.glob("runs/*/hosts/localhost/status.json")
        try:
            status: Dict[str, Any] = json.loads(path.read_text())
        except ValueError:  # it is being replaced
            return self.status()
        return status

    @property
    def step(self) -> int:
        """Return the newest step."""
        return self.status()["global_step"] or 0

    def fill(self, rows: int) -> None:
        """Wait until the table has that many rows."""
        eventually("a full table", lambda: self.step * 2 * BATCH > rows, PATIENCE_S)

    def rate(self) -> float:
        """Return steps a second, over ``RATE_S`` seconds."""
        before, began = self.step, time.monotonic()
        time.sleep(RATE_S)
        return (self.step - before) / (time.monotonic() - began)

    def change(self, *arguments: str) -> Dict[str, float]:
        """Drain tasks, or let them train; return the seconds until all was ready, and those of the pause."""
        number, began = self.status()["formation"]["number"], time.monotonic()
        draining = self.launch.begin("drain", *arguments)
        last: Optional[int] = None
        moved = began
        while draining.poll() is None:
            status = self.status()
            if status["formation"]["number"] == number and status["global_step"] != last:
                last, moved = status["global_step"], time.monotonic()
            elif status["formation"]["number"] > number and status["global_step"] > (last or 0):
                break
            time.sleep(LOOK_S)
        trains = time.monotonic()
        _, errors = draining.communicate(timeout=PATIENCE_S)
        if draining.returncode:
            raise RuntimeError(errors)
        return {"ready_s": moved - began, "pause_s": trains - moved}


R = TypeVar("R", bound=Filling)


@contextmanager
def up(make: Callable[[Path], R], rows: int) -> Iterator[R]:
    """Start the run that is made in a folder, fill its table, and end it."""
    with tempfile.TemporaryDirectory() as folder:
        run = make(Path(folder))
        begun = run.launch("up", "-d")
        if begun.returncode:
            raise RuntimeError(begun.stderr)
        try:
            run.fill(rows)
            yield run
        finally:
            run.launch.end()


def main() -> int:
    """Print one line a change, and the rates."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.drain", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    asked = parser.parse_args()
    rates: List[float] = []
    with up(lambda folder: Run(folder, 2, asked.rows), asked.rows) as run:
        for change in (("--back", "ps:2", "ps:3"), ("ps:0", "ps:3")):
            found = run.change(*change)
            print(
                f"drain {' '.join(change):18} ready {found['ready_s']:.1f} s, pause {found['pause_s']:.1f} s",
                flush=True,
            )
            if change[0] == "--back":
                rates.append(run.rate())
    with up(lambda folder: Run(folder, 4, asked.rows), asked.rows) as run:
        rates.append(run.rate())
    print(f"4 ps: {rates[0]:.1f} steps/s after the change, {rates[1]:.1f} in a run that begins with them")
    return 0


if __name__ == "__main__":
    sys.exit(main())
