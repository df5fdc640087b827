"""Draws a step of this project: python -m tests.benchmarks.timeline docs/timeline.svg (as root).

Two workers and two ps, each on a fake host of its own with a slow network card, train variables and almost no
arithmetic (the case ``quick`` of the speed benchmark). One worker's trace of one step is drawn; ``--trace FILE`` keeps
it, too, and ``--train JSON`` trains in another way.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict

from cluster.trace.chrome_format import picture
from cluster.trace.recording import TRIES
from tests.benchmarks.speed.cases import CASES, Way
from tests.benchmarks.speed.running import Cluster
from tests.support.hosts import FakeHosts, Host

CASE = CASES["quick"]
STEP = 6
HOME = "/root/run"  # on the hosts


def traced(train: Dict[str, Any]) -> Dict[str, Any]:
    """The trace of the last worker, of the first step of which all was recorded."""
    way = Way("traced", {"steps": STEP + TRIES, "trace": STEP, **train})
    with FakeHosts(CASE.hosts) as hosts, tempfile.TemporaryDirectory() as logs:
        for host in hosts:
            host.shape(float(CASE.mbit or 0))
        with Cluster(hosts, CASE, way, Path(logs), HOME) as cluster:
            codes = cluster.exit_codes()
        if any(codes):
            sys.exit(f"expected every task to end by itself, found the exit codes {codes}")
        return _complete(hosts[CASE.workers - 1])


def _complete(host: Host) -> Dict[str, Any]:
    for step in range(STEP, STEP + TRIES):
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
