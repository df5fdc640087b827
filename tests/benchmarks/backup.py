"""What one worker that is ten times slower costs the others: python -m tests.benchmarks.backup

Three workers, one of them slow, one backup worker; beside it the two quick ones alone, and
the same with TensorFlow's own SyncReplicasOptimizer. "Computing" is a pause, so that
the processors of this machine do not matter. Prints milliseconds per step and ratios.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List

from launch.agent.linux.sockets import free_ports

QUICK_S, SLOW_S = 0.1, 1.0
STEPS = 60
STOCK_STEPS = 600  # its workers join up to 30 s after the chief, which trains alone until then
PATIENCE_S = 300.0


def run(folder: Path, argv: List[str], pauses: List[float]) -> str:
    """Runs one ps and a worker for each pause; returns the output of the last quick worker."""
    ports = free_ports(1 + len(pauses))
    cluster = {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{port}" for port in ports[1:]]}
    tasks = [("ps", 0), *(("worker", index) for index in range(len(pauses)))]
    processes = [_start(folder, argv, cluster, role, index) for role, index in tasks]
    try:
        quick = 1 + max(index for index, pause in enumerate(pauses) if pause == QUICK_S)
        output, _ = processes[quick].communicate(timeout=PATIENCE_S)
    finally:
        for process in processes:
            process.kill()
            process.communicate()
    return output


def _start(folder: Path, argv: List[str], cluster: Dict[str, Any], role: str, index: int) -> "subprocess.Popen[str]":
    home = folder / f"{role}.{index}"
    home.mkdir()
    config = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
    env = {**os.environ, "TF_CONFIG": config, "LAUNCH_TASK_DIR": str(home), "PYTHONUNBUFFERED": "1"}
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", *argv], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


def ours_ms(pauses: List[float], backup: int) -> float:
    """Milliseconds per step of this project, from the last line of progress."""
    train = {"steps": STEPS, "batch_size": 2, "backup_workers": backup}
    argv = ["-m", "jobs.main", "tests.support.training.jobs.uneven", "--train", json.dumps(train), "--args"]
    with tempfile.TemporaryDirectory() as folder:
        output = run(Path(folder), [*argv, json.dumps({"pause_s": pauses})], pauses)
    rates = [float(rate) for rate in re.findall(r"([\d.]+) ms/step", output)]
    return sorted(rates[1:])[len(rates[1:]) // 2]


def stock_ms(pauses: List[float], backup: int) -> float:
    """Milliseconds per step of the textbook's script."""
    options = json.dumps({"steps": STOCK_STEPS, "backup_workers": backup, "pause_s": pauses})
    with tempfile.TemporaryDirectory() as folder:
        return 1000 * float(run(Path(folder), ["-m", "tests.benchmarks.stock", options], pauses).splitlines()[-1])


def main() -> None:
    """Prints the table."""
    quick = [QUICK_S, QUICK_S]
    cases = {"another worker is slow": [*quick, SLOW_S], "the chief is slow": [SLOW_S, *quick]}
    for name, measure in (("this project", ours_ms), ("stock SyncReplicasOptimizer", stock_ms)):
        alone = measure(quick, 0)
        print(f"{name}: two quick workers alone {alone:.0f} ms/step", flush=True)
        for case, pauses in cases.items():
            with_slow = measure(pauses, 1)
            print(
                f"{name}: and a backup worker, {case}: {with_slow:.0f} ms/step, ratio {with_slow / alone:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
