"""TensorBoard for a run's summaries and learning curve, until the launcher ends.

TensorBoard listens on this host's loopback address, on a port that the system chooses. This process ends TensorBoard if
the launcher ends, or sends nothing for ``LEASE_S``. The kernel ends TensorBoard if this process dies.
"""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Callable, Dict, Optional

from launch.agent.environments.environment import Environment
from launch.agent.linux import processes
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import newest
from launch.agent.wire.verb_requests import RunReference
from launch.status.run import RunStatus

LEASE_S = 15.0  # the launcher sends a sign of life every second
CHUNK = 1 << 16
_ADDRESS = re.compile(rb" at http://[^ /]*:(\d+)/")
Send = Callable[[Dict[str, Any]], None]


def board(reference: RunReference, send: Send) -> None:
    """Serve TensorBoard for the newest run of a name.

    ``send`` is called with {"run", "port"} when TensorBoard listens, or with {"error"} if it cannot run.
    """
    folder = newest(reference)
    problem = _hindrance(folder) if folder else f"no run of the name {reference.name} has been on this host"
    if folder is None or problem:
        send({"error": problem})
        return
    python, run = _python(folder), folder.run
    curve = tempfile.mkdtemp(prefix="board-", dir=str(folder.own))
    process = _tensorboard(python, folder, curve)
    try:
        last_words = _look_after(process, lambda port: send({"run": run, "port": port}))
        if last_words is not None:
            send({"error": _why(python, last_words)})
    finally:
        processes.signal_group(process.pid, signal.SIGKILL)  # it has no data to save
        process.wait()
        shutil.rmtree(curve, ignore_errors=True)


def _hindrance(folder: RunFolder) -> Optional[str]:
    """Return the reason why nothing can be shown; None where the run has summaries or a learning curve."""
    status = folder.read_record("status.json", RunStatus)
    if (status is not None and status.history.step) or next(folder.path.rglob("*tfevents*"), None) is not None:
        return None
    return f"{folder.run} has no summaries in {folder.path}; its chief writes the first ones with its first step"


def _python(folder: RunFolder) -> str:
    """Return the Python of the run's tasks: of their environment, or else of this process."""
    digest = plan_file.read(folder).environment
    return str(Environment(folder.workdir, digest).python) if digest else sys.executable


def _tensorboard(python: str, folder: RunFolder, curve: str) -> "subprocess.Popen[bytes]":
    program = [str(Path(__file__).with_name("board_curve.py")), str(folder.own / "status.json"), curve]
    where = ["--logdir", str(folder.path), "--host", "127.0.0.1", "--port", "0"]
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # the GPUs belong to the tasks
    return processes.spawn([python, *program, *where], env, folder.own, subprocess.PIPE)


def _look_after(process: "subprocess.Popen[bytes]", listens: Callable[[int], None]) -> Optional[str]:
    """Read from TensorBoard and the launcher until one ends; return TensorBoard's last line if TensorBoard ended.

    A launcher that is silent for ``LEASE_S`` counts as ended.
    """
    output, printed, reported = process.stdout.fileno(), b"", False  # type: ignore[union-attr]
    received_at = time.monotonic()
    while time.monotonic() - received_at < LEASE_S:
        ready = select.select([0, output], [], [], LEASE_S)[0]
        if 0 in ready:
            if not os.read(0, CHUNK):
                return None
            received_at = time.monotonic()
        if output in ready:
            data = os.read(output, CHUNK)
            if not data:
                return _last_line(printed)
            printed = (printed + data)[-CHUNK:]
            where = None if reported else _ADDRESS.search(printed)
            if where:
                reported = True
                listens(int(where[1]))
    return None


def _last_line(printed: bytes) -> str:
    lines = printed.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else "none"


def _why(python: str, last_words: str) -> str:
    """Return the reason why TensorBoard ended, and the remedy."""
    if "No module named 'tensorboard'" in last_words or "No module named tensorboard" in last_words:
        return f"no TensorBoard in {python}; install it with `{python} -m pip install tensorboard`"
    return f"TensorBoard ended; its last lines: {last_words}"
