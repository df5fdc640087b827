"""Measure for how long training stands still while it is exported: make bench-export

Two ps and two workers on this machine fill an embedding table with ``--rows`` rows. Then ``launch export`` runs
``--times`` times. The chief's flight recorder has its steps, and for how long the chief saved between two of them: the
longest of these is the pause. Steps take longer meanwhile, since servers read rows for the export too. So the longest
step stands beside that of as much time without an export.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import List, Sequence, Set

from cluster.protocol.flight_records import FILE, Span, read_records
from launch.agent.linux.sockets import free_ports
from tests.benchmarks.drain import BATCH, INPUTS, Filling, up
from tests.support.launch.launcher import Launcher
from tests.support.waiting import eventually

PATIENCE_S = 600.0
LOOK_S = 0.02
QUIET_S = 10.0
JOB = f"""{INPUTS}
def predict(ids):
    return tf.reduce_sum(embedding.lookup(embedding.table("rows", 16), ids), 1)

def model(ids):
    return tf.square(predict(ids) - 1.0)
"""


class Run(Filling):
    """A run in a folder of its own."""

    def __init__(self, folder: Path, rows: int, batch: int):
        self.launch = Launcher(folder)
        (self.launch.file.parent / "fill.py").write_text(JOB)
        addresses = [f"localhost:{port}" for port in free_ports(4)]
        self.launch.write(
            command=None, restart=None, job="fill.py", args={"rows": rows},
            cluster={"ps": addresses[:2], "worker": addresses[2:]},
            train={"steps": 10**9, "batch_size": batch},
        )  # fmt: skip
        self._batch = batch

    def spans(self) -> List[Span]:
        """Return the newest spans of the chief's time."""
        found = [path for path in self.launch.workdir.rglob(FILE) if path.parent.name == "worker.0"]
        return read_records(found[0]).spans if found else []

    def fill(self, rows: int) -> None:
        """Wait until the table has that many rows."""
        eventually("a full table", lambda: any(span.step * 2 * self._batch > rows for span in self.spans()), PATIENCE_S)

    def _checkpoints(self) -> Set[str]:
        (folder,) = self.launch.workdir.glob("runs/*")
        return {path.name for path in folder.rglob("model-*.index") if path.parent.name == "checkpoint"}

    def export(self, folder: Path) -> List[Span]:
        """Export; return the spans until the checkpoint was there: the recorder has no room for those of all time."""
        exporting = self.launch.begin("export", str(folder))
        saved, began = self._checkpoints(), time.monotonic()
        while exporting.poll() is None and not self._checkpoints() - saved:
            time.sleep(LOOK_S)
        spans = [span for span in self.spans() if span.ended > began]
        _, errors = exporting.communicate(timeout=PATIENCE_S)
        if exporting.returncode:
            raise RuntimeError(errors)
        return spans


def lengths(spans: Sequence[Span], phase: str = "step") -> List[float]:
    """Return how many ms each span of a phase took."""
    return [1000 * (span.ended - span.began) for span in spans if span.phase == phase]


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
            begin = time.monotonic()
            time.sleep(QUIET_S)
            quiet = lengths([span for span in run.spans() if span.ended > begin])
            spans = run.export(Path(folder) / str(number))
            steps, pauses = lengths(spans), lengths(spans, "saving")
            took_s = spans[-1].ended - spans[0].began
            print(
                f"a step {statistics.median(quiet):.1f} ms, the longest of {len(quiet)} without an export"
                f" {max(quiet):.1f} ms; the checkpoint was there after {took_s:.1f} s; training stood still for"
                f" {max(pauses):.1f} ms; of {len(steps)} steps meanwhile half took {statistics.median(steps):.1f} ms or"
                f" more, the longest {max(steps):.1f} ms",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
