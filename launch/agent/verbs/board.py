"""TensorBoard beside a run's summaries, for as long as somebody looks at it.

It listens on this host's own loopback, on a port that the system gives it. It is ended when
the launcher goes or is silent for ``LEASE_S``, and by the kernel if this process dies.
"""

import os
import re
import select
import signal
import subprocess
import sys
import time
from typing import Any, Callable, Dict, Optional

from launch.agent.environments.environment import Environment
from launch.agent.linux import processes
from launch.agent.state import plan_file
from launch.agent.state.run_folder import RunFolder
from launch.agent.state.runs import newest
from launch.agent.wire.verb_requests import RunReference

LEASE_S = 15.0  # the launcher says every second that it is there
CHUNK = 1 << 16
_ADDRESS = re.compile(rb" at http://[^ /]*:(\d+)/")
Send = Callable[[Dict[str, Any]], None]


def board(reference: RunReference, send: Send) -> None:
    """Serve TensorBoard for the newest run of a name.

    ``send`` gets {"run", "port"} when TensorBoard listens, and {"error"} when TensorBoard cannot run.
    """
    folder = newest(reference)
    problem = _hindrance(folder) if folder else f"no run of the name {reference.name} has been on this host"
    if folder is None or problem:
        send({"error": problem})
        return
    python, run = _python(folder), folder.run
    process = _tensorboard(python, folder)
    try:
        last_words = _look_after(process, lambda port: send({"run": run, "port": port}))
        if last_words is not None:
            send({"error": _why(python, last_words)})
    finally:
        processes.signal_group(process.pid, signal.SIGKILL)  # it has nothing to save
        process.wait()


def _hindrance(folder: RunFolder) -> Optional[str]:
    """Return why there is nothing to show; None where there are summaries."""
    if next(folder.path.rglob("*tfevents*"), None) is None:
        return f"{folder.run} has no summaries in {folder.path}; its chief writes the first ones with its first step"
    return None


def _python(folder: RunFolder) -> str:
    """Return the Python that the run's tasks use.

    The Python is that of the environment that was built for the tasks, or else the one of this process.
    """
    digest = plan_file.read(folder).environment
    return str(Environment(folder.workdir, digest).python) if digest else sys.executable


def _tensorboard(python: str, folder: RunFolder) -> "subprocess.Popen[bytes]":
    where = ["--logdir", str(folder.path), "--host", "127.0.0.1", "--port", "0"]
    env = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}  # the GPUs are the tasks'
    return processes.spawn([python, "-m", "tensorboard.main", *where], env, folder.own, subprocess.PIPE)


def _look_after(process: "subprocess.Popen[bytes]", listens: Callable[[int], None]) -> Optional[str]:
    """Read both sides until one ends; return TensorBoard's last line if TensorBoard ended.

    A launcher that is silent for ``LEASE_S`` has ended.
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
    """Return why TensorBoard ended, and what to do."""
    if "No module named 'tensorboard'" in last_words or "No module named tensorboard" in last_words:
        return f"no TensorBoard in {python}; install it with `{python} -m pip install tensorboard`"
    return f"TensorBoard ended; its last lines: {last_words}"
