"""What windows of local steps save: python -m tests.benchmarks.windows (as root).

Two workers and two ps, each on a fake host of its own with a slow network card, train variables and almost no
arithmetic (the case ``quick`` of the speed benchmark), asynchronously. Prints what a step of every worker takes and
sends, for each number of ``train.local_steps``.
"""

import tempfile
from pathlib import Path

from tests.benchmarks.speed.cases import CASES, Way
from tests.benchmarks.speed.running import Pace, measure
from tests.support.hosts import FakeHosts

CASE = CASES["quick"]
NUMBERS = (1, 4, 16)
PACE = Pace(warm=32, seconds=20.0, steps=128)  # a window of every worker, and several


def main() -> None:
    """Measures each number in turn, on the same hosts."""
    print(f"{CASE.workers} workers, {CASE.ps} ps, {CASE.megabytes:g} MB of variables, {CASE.mbit:g} Mbit/s")
    first_ms = 0.0
    with FakeHosts(CASE.hosts) as hosts, tempfile.TemporaryDirectory() as logs:
        for host in hosts:
            host.shape(float(CASE.mbit or 0))
        for number in NUMBERS:
            way = Way(f"windows of {number}", {"mode": "async", "local_steps": number}, waits=False)
            found = measure(hosts, CASE, way, PACE, Path(logs))
            first_ms = first_ms or found["step_ms"]
            took = f"{found['step_ms']:.1f} ms, ratio {first_ms / found['step_ms']:.1f}"
            moved = f"{found['sent_mb']:.2f} MB sent, {found['received_mb']:.2f} MB received"
            print(f"local_steps {number}: a step: {took}; {moved}", flush=True)


if __name__ == "__main__":
    main()
