"""What a fixed order of summation costs: ``python -m tests.benchmarks.order [MODEL] [WORKERS]``.

Runs of the same job, in turns with accumulators and with a queue for each worker, on this machine. Only the summation
differs: neither is compared with one process, and both have as many threads.
"""

import functools
import json
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List
from unittest.mock import patch

from tests.cluster import processes

ROUNDS, WARM_UP = 4, 50  # runs of each kind; steps that do not count
CASES: Dict[str, Any] = {
    "digits": ("digits", {}, {"steps": 300, "batch_size": 32}),
    "resnet50": ("synthetic", {"model": "resnet50"}, {"steps": 25, "batch_size": 1}),
}


def main(case: str, workers: int) -> None:
    """Print the median step of each run, and the ratio of the medians of both kinds."""
    found: Dict[bool, List[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for in_order in found:
            found[in_order].append(_step_ms(case, workers, in_order))
            print(f"{'in order' if in_order else 'as they come'}: {found[in_order][-1]:.2f} ms a step", flush=True)
    plain, ordered = (statistics.median(found[in_order]) for in_order in (False, True))
    print(f"{case}, {workers} workers: {plain:.2f} ms, in order {ordered:.2f} ms: {100 * (ordered / plain - 1):+.1f} %")


def _step_ms(case: str, workers: int, in_order: bool) -> float:
    job, args, train = CASES[case]
    with TemporaryDirectory() as folder, processes.Cluster(Path(folder), job, ps=2, workers=workers) as cluster:
        argv = [sys.executable, "-m", "tests.benchmarks.order", "task", str(int(in_order))]
        with patch.object(processes, "PROGRAM", argv):
            cluster.start_all({**train, "towers": 1}, args)
        cluster.finish()
        return float(json.loads((Path(folder) / "worker.0" / "median").read_text()))


def task(in_order: bool, argv: List[str]) -> int:
    """Be one task of a run, which notes how long its steps take."""
    import os

    from cluster.exchange import Exchange
    from cluster.synchronous import Synchronous
    from jobs.main import main as run

    took: List[float] = []
    step = Synchronous.step

    @functools.wraps(step)
    def timed(*args: Any) -> Any:
        began = time.monotonic()
        result = step(*args)
        took.append((time.monotonic() - began) * 1000)
        return result

    made = Exchange.__init__
    with patch.object(Synchronous, "step", timed), patch.object(
        Exchange, "__init__", lambda self, *args, **named: made(self, *args, **{**named, "in_order": in_order})
    ):
        code = run(argv)
    if took:
        (Path(os.environ["LAUNCH_TASK_DIR"]) / "median").write_text(json.dumps(statistics.median(took[WARM_UP:])))
    return code


if __name__ == "__main__":
    if sys.argv[1:2] == ["task"]:
        import os

        code = task(bool(int(sys.argv[2])), sys.argv[3:])
        sys.stdout.flush()
        os._exit(code)
    main(sys.argv[1] if len(sys.argv) > 1 else "digits", int(sys.argv[2]) if len(sys.argv) > 2 else 4)
