"""How long `make up` takes to the first step and from the last one to the end: make bench

Everything is measured on this machine in one run and compared with what importing
TensorFlow and opening one session takes here, which nothing that trains can be faster than.
"""

import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Dict, List, Tuple

ROUNDS = 5
POLL_S = 0.005
PATIENCE_S = 120.0
BARE = "import tensorflow.compat.v1 as tf; tf.Session().run(tf.constant(1))"


def bare_s() -> float:
    """Seconds to import TensorFlow and open one session."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-W", "ignore", "-c", BARE], check=True, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


def make_up_s(workdir: str) -> Tuple[float, float]:
    """Seconds from `make up` to the first training step, and from the last step to the end of the command."""
    began = time.monotonic()
    up = subprocess.Popen(
        ["make", "up", f"VENV={sys.prefix}", f"ARGS=--set workdir={workdir}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        seen = _watch(Path(workdir), up, began + PATIENCE_S)
        up.communicate(timeout=PATIENCE_S)
    finally:
        up.kill()
    if up.returncode != 0:
        raise RuntimeError(f"make up ended with {up.returncode}")
    return seen["first"] - began, time.monotonic() - seen["last"]


def _watch(workdir: Path, up: "subprocess.Popen[bytes]", until: float) -> Dict[str, float]:
    """When the chief's log first told of its first and of its last step."""
    seen: Dict[str, float] = {}
    while "last" not in seen and time.monotonic() < until and up.poll() is None:
        for log in workdir.glob("runs/*/worker.0/attempt_0.log"):
            steps = re.findall(r"^step (\d+)/(\d+)", log.read_text(), re.MULTILINE)
            if steps:
                seen.setdefault("first", time.monotonic())
            if steps and steps[-1][0] == steps[-1][1]:
                seen.setdefault("last", time.monotonic())
        time.sleep(POLL_S)
    return seen


def main() -> None:
    """Prints the medians and what is promised of them."""
    bare: List[float] = []
    first: List[float] = []
    last: List[float] = []
    make_up_s(tempfile.mkdtemp())  # warms the disk cache
    for _ in range(ROUNDS):
        bare.append(bare_s())
        with tempfile.TemporaryDirectory() as workdir:
            to_first, to_end = make_up_s(workdir)
        first.append(to_first)
        last.append(to_end)
    floor, begun, ended = statistics.median(bare), statistics.median(first), statistics.median(last)
    print(f"import TensorFlow and open one session  {floor:.2f} s (median of {ROUNDS})")
    print(f"`make up` to the first training step    {begun:.2f} s, at most 1.5 x that + 1 s = {1.5 * floor + 1:.2f} s")
    print(f"the last step to the end of `make up`   {ended:.2f} s, at most 3 s")


if __name__ == "__main__":
    main()
