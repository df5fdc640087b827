"""Measure embedding tables as they grow: the memory of a ps, and a step's lookup and update.

    python -m tests.benchmarks.tables --rows 100000 1000000 10000000
    python -m tests.benchmarks.tables --rows 1000000 --seen 100000000

A ps process holds one table with Adagrad. Another process asks it for rows that nobody has asked for until
there are so many. Then it times steps: 5,000 ids that the ps knows, drawn evenly, looked up and updated.

With ``--seen``, an id gets its row in the second step that has it. So many ids come for each row, all others once.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any, Dict, List

import numpy as np

from cluster import embedding
from cluster.recommend.tables.row_optimizers import RowOptimizer, rule_of, slots_of
from cluster.recommend.tables.store import Store
from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from launch.agent.linux.sockets import free_ports

IDS, AT_ONCE = 5000, 10_000
STEPS = 200
TRIM_S = 1.0  # of this ps, in which a job's takes longer to return freed memory
_ONCE = 1 << 40  # where ids begin that come once
_PS = """
import json, os, sys
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
from cluster.runtime.process import trim_memory_every
from cluster.runtime.tf_compat import tf
trim_memory_every(float(sys.argv[2]))
tf.train.Server(json.loads(sys.argv[1]), "ps", 0).join()
"""


def resident(pid: int) -> int:
    """Bytes of memory that a process has."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Table:
    """One table on one ps, in a session."""

    def __init__(self, target: str, width: int, comes: int):
        admit = embedding.after(comes) if comes > 1 else None
        table, optimizer = embedding.table("user", width, admit=admit), tf.train.AdagradOptimizer(0.1)
        self.store = Store("servers/embeddings_16/part_0", ps_device(0), [table], slots_of(optimizer))
        self.keys = tf.placeholder(tf.int64, [None])
        rows = tf.identity(self.store.find(self.keys, tf.zeros_like(self.keys, tf.int32), True))
        grad = tf.IndexedSlices(rows * 0.01, self.keys)
        self.step = RowOptimizer(rule_of(optimizer), [self.store]).apply_gradients([(grad, self.store.rows)])
        self.session = tf.Session(target)
        self.session.run(self.store.first())


def keys(begin: int, end: int) -> Any:
    """Well-spread keys of the ids from begin to before end."""
    return np.arange(begin, end, dtype=np.int64) * np.int64(-7046029254386353131)


def fill(table: Table, had: int, rows: int, once: int) -> None:
    """Give a table rows up to a number.

    Args:
      once: ids that come besides, and do not come again, for each row; with any, the others come twice.
    """
    at_once = AT_ONCE // (once + 2) if once else AT_ONCE
    before = keys(0, 0)
    for begin in range(had, rows + at_once * (once > 0), at_once):
        some = keys(min(begin, rows), min(begin + at_once, rows))
        others = keys(_ONCE + begin * once, _ONCE + (begin + len(some)) * once)
        table.session.run(table.step, {table.keys: np.concatenate([before, some, others])})
        before = some if once else before
    found = table.session.run(table.store.places.count)
    assert found == rows, f"expected {rows} rows, found {found}"


def measure(table: Table, ps: int, rows: int, had: int, before: int, once: int) -> Dict[str, Any]:
    fill(table, had, rows, once)
    peak = resident(ps) - before
    time.sleep(3 * TRIM_S)
    memory = resident(ps) - before
    wanted = rows * table.store.width * 2 * 4
    random, times = np.random.RandomState(0), []
    for _ in range(STEPS):
        chosen = np.unique(random.randint(0, rows, IDS)).astype(np.int64) * np.int64(-7046029254386353131)
        began = time.perf_counter()
        table.session.run(table.step, {table.keys: chosen})
        times.append(time.perf_counter() - began)
    return {
        "rows": rows,
        "seen": rows * (once + 1),
        "bytes": memory,
        "over_rows_and_slots": round(memory / wanted, 2),
        "before_trim": round(peak / wanted, 2),
        "step_ms": round(1e3 * statistics.median(times), 2),
        "slowest_ms": round(1e3 * max(times), 2),
    }


def main() -> None:
    """Print one line of JSON for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--seen", type=int, default=0, help="ids that come, for the largest number of rows")
    parser.add_argument("--width", type=int, default=16)
    options = parser.parse_args()
    sizes: List[int] = options.rows
    once = max(0, options.seen // max(sizes) - 1)
    cluster = {role: [f"127.0.0.1:{port}"] for role, port in zip(("ps", "worker"), free_ports(2))}
    ps = subprocess.Popen(
        [sys.executable, "-c", _PS, json.dumps(cluster), str(TRIM_S)],
        stderr=subprocess.DEVNULL,
        env={"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", **os.environ},  # as a job's ps
    )
    try:
        with tf.device("/job:worker/task:0/cpu:0"):
            table = Table(tf.train.Server(cluster, "worker", 0).target, options.width, 2 if once else 1)
        before, had = resident(ps.pid), 0
        for rows in sorted(sizes):
            print(json.dumps(measure(table, ps.pid, rows, had, before, once)), flush=True)
            had = rows
    finally:
        ps.kill()
        ps.wait()
    sys.stdout.flush()
    os._exit(0)  # a session whose server is gone waits for it for ever


if __name__ == "__main__":
    main()
