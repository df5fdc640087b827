"""Draws a step of this project: python -m tests.benchmarks.timeline docs/timeline.svg (as root).

Two workers and two ps, each on a fake host of its own with a slow network card, train variables and almost no
arithmetic (the case ``quick`` of the speed benchmark). One worker's trace of one step is drawn; ``--trace FILE`` keeps
it, too, and ``--train JSON`` trains in another way.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List

from cluster.trace.picture import picture
from tests.benchmarks.speed.cases import CASES, WAYS
from tests.hosts import FakeHosts, Host

ROOT = Path(__file__).resolve().parents[2]
CASE, WAY = CASES["quick"], WAYS["ours"]
STEP, MORE = 6, 5  # the step, and how many may be traced until TensorFlow has recorded all of one
PORT = 2222
HOME = "/root/run"  # on the hosts
PATIENCE_S = 300.0


def traced(train: Dict[str, Any]) -> Dict[str, Any]:
    """The trace of the last worker, of the first step of which all was recorded."""
    with FakeHosts(CASE.hosts) as hosts:
        for host in hosts:
            host.shape(float(CASE.mbit or 0))
        roles = [*(("worker", n) for n in range(CASE.workers)), *(("ps", n) for n in range(CASE.ps))]
        cluster: Dict[str, List[str]] = {"worker": [], "ps": []}
        for (role, _), host in zip(roles, hosts):
            cluster[role].append(f"{host.address}:{PORT}")
        running = [_start(host, cluster, role, n, train) for (role, n), host in zip(roles, hosts)]
        try:
            codes = [process.wait(PATIENCE_S) for process in running]
        finally:
            for process in running:
                process.kill()
        if any(codes):
            sys.exit(f"expected every task to end by itself, found the exit codes {codes}")
        return _complete(hosts[CASE.workers - 1])


def _start(host: Host, cluster: Dict[str, List[str]], role: str, index: int, train: Dict[str, Any]) -> Any:
    config = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
    home = f"{HOME}/{role}.{index}"
    host.run(["mkdir", "-p", home])
    env = [f"TF_CONFIG={config}", f"PYTHONPATH={ROOT}", f"LAUNCH_TASK_DIR={home}", "CUDA_VISIBLE_DEVICES="]
    settings = json.dumps({"steps": STEP + MORE, "batch_size": 1, "towers": 1, "trace": STEP, **train})
    args = json.dumps({"shapes": WAY.shapes(CASE)})
    job = ["-m", "jobs.main", "tests.benchmarks.speed.job", "--train", settings, "--args", args]
    argv = ["env", *env, sys.executable, "-W", "ignore", *job]
    return host.popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _complete(host: Host) -> Dict[str, Any]:
    for step in range(STEP, STEP + MORE):
        path = f"{HOME}/trace/step_{step}.worker_{CASE.workers - 1}.json"
        trace: Dict[str, Any] = json.loads(host.read(path))
        if trace["otherData"]["unrecorded_transfers"] == 0:
            return trace
    sys.exit("TensorFlow recorded no step as a whole; try again")


def main() -> None:
    """Reads the command line and writes the picture."""
    parser = argparse.ArgumentParser("python -m tests.benchmarks.timeline", description=__doc__)
    parser.add_argument("picture", type=Path, help="the SVG file to write")
    parser.add_argument("--train", type=json.loads, default={}, metavar="JSON", help="train section of a hosts file")
    parser.add_argument("--trace", type=Path, help="keep the trace itself in this file")
    asked = parser.parse_args()
    trace = traced(asked.train)
    if asked.trace:
        asked.trace.write_text(json.dumps(trace))
    asked.picture.write_text(picture(trace))


if __name__ == "__main__":
    main()
