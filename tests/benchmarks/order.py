"""What a fixed order of summation costs, on this machine.

    python -m tests.benchmarks.order pushes            # the sum of one push, by size
    python -m tests.benchmarks.order runs digits 4     # whole steps of 4 workers and 2 ps

Each is measured in turns with accumulators and with a queue for each worker. Nothing is compared with one process.
"""

import functools
import json
import os
import statistics
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List
from unittest.mock import patch

from tests.support.training import processes

ROUNDS, WARM_UP = 4, 50  # measurements of each kind; steps that do not count
ITEMS = (1 << 10, 1 << 16, 1 << 20)  # float32 numbers in a push
CASES: Dict[str, Any] = {
    "digits": ("digits", {}, {"steps": 300, "batch_size": 32}),
    "resnet50": ("synthetic", {"model": "resnet50"}, {"steps": 80, "batch_size": 1}),
}


def runs(case: str, workers: int) -> None:
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
    from cluster.steps.exchange import Exchange
    from cluster.steps.sync_worker import SyncWorker
    from jobs.main import main as run

    took: List[float] = []
    step, made = SyncWorker.step, Exchange.__init__

    @functools.wraps(step)
    def timed(*args: Any) -> Any:
        began = time.monotonic()
        result = step(*args)
        took.append((time.monotonic() - began) * 1000)
        return result

    def ordered(self: Any, *args: Any, **named: Any) -> None:
        made(self, *args, **{**named, "in_order": in_order})

    with patch.object(SyncWorker, "step", timed), patch.object(Exchange, "__init__", ordered):
        code = run(argv)
    if took:
        (Path(os.environ["LAUNCH_TASK_DIR"]) / "median").write_text(json.dumps(statistics.median(took[WARM_UP:])))
    return code


def pushes() -> None:
    """Print how long it takes to give, add and apply one push of 4 and of 8 workers, at best."""
    for workers in (4, 8):
        for items in ITEMS:
            best = [min(_load_us(workers, items, in_order) for _ in range(ROUNDS)) for in_order in (False, True)]
            more = best[1] - best[0]
            print(
                f"{workers} workers, {items * 4 >> 10} KiB: {best[0]:.0f} us, in order {best[1]:.0f} us: {more:+.0f} us"
            )


def _load_us(workers: int, items: int, in_order: bool) -> float:
    """The time of the quickest tenth."""
    from cluster.runtime.tf_compat import tf

    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=1)) as session:
        steps = _one_load(workers, items, in_order)
        session.run(tf.global_variables_initializer())
        took = []
        for _ in range(300):
            began = time.perf_counter()
            for step in steps:
                session.run(step)
            took.append((time.perf_counter() - began) * 1e6)
    return sorted(took)[len(took) // 10]


def _one_load(workers: int, items: int, in_order: bool) -> List[Any]:
    """What gives the gradients, and what adds and applies them."""
    from cluster.runtime.tf_compat import tf
    from cluster.steps.accumulators import Accumulator, Separate
    from cluster.steps.exchange import Exchange, plain_push
    from cluster.variables.local_copies import LocalCopies
    from cluster.variables.wire_format import Wire

    names = ["w", *(f"gradient_{worker}" for worker in range(workers))]
    w, *grads = [tf.get_variable(n, [items], initializer=tf.ones_initializer(), use_resource=False) for n in names]
    push = plain_push(grads[0].read_value(), w)
    exchange = Exchange(LocalCopies([], {}, ""), Wire(), in_order=in_order)
    if in_order:
        meeting: List[Any] = [
            Separate(push, worker, [worker] if worker else list(range(workers)), exchange) for worker in range(workers)
        ]
    else:
        meeting = [Accumulator(push, workers, exchange)] * workers
    given = [each.give(grad + 1.0, tf.constant(1 << 40, tf.int64)) for each, grad in zip(meeting, grads)]
    return [tf.group(*given), tf.assign_sub(w, meeting[0].take()).op]


if __name__ == "__main__":
    what, *arguments = sys.argv[1:] or ["pushes"]
    if what == "task":
        code = task(bool(int(arguments[0])), arguments[1:])
        sys.stdout.flush()
        os._exit(code)
    if what == "pushes":
        pushes()
    else:
        runs(arguments[0], int(arguments[1]))
