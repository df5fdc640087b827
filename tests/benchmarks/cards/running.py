"""Runs of the trials: hosts files, verbs, what they print, and expectations."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Sequence

HERE = Path(__file__).parent
METRICS_PORT = 29476
PATIENCE_S = 60.0
OUT = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="cards-"))
failed: List[str] = []


def expect(what: str, found: Any, good: bool) -> None:
    """Print whether one expectation held, and what was found."""
    print(f"{'  ok  ' if good else '  FAIL'} {what}: {found}", flush=True)
    if not good:
        failed.append(what)


def folder(name: str, command: Sequence[str], **keys: Any) -> Path:
    """Return a hosts file in a folder of its own: one worker on this machine, with the one card."""
    place = OUT / name
    place.mkdir(parents=True, exist_ok=True)
    for program in ("train.py", "ddp.py"):
        shutil.copy(str(HERE / program), str(place))
    settings = {"name": name, "command": list(command), "cluster": {"worker": [{"host": "localhost", "gpus": 1}]}}
    file = place / "hosts.yaml"
    file.write_text(json.dumps({**settings, "workdir": str(OUT / "work"), **keys}, indent=1))
    return file


def launch(*words: Any, patience_s: float = 120.0) -> "subprocess.CompletedProcess[str]":
    """Run a verb; the result has its output with stderr."""
    argv = [sys.executable, "-m", "launch", *map(str, words)]
    return subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=patience_s)


def status(file: Path) -> Dict[str, Any]:
    """Return what `launch status --json` prints; {} while there is no run."""
    done = subprocess.run(
        [sys.executable, "-m", "launch", "status", str(file), "--json"], stdout=subprocess.PIPE, text=True, timeout=60
    )
    return dict(json.loads(done.stdout)) if done.stdout.startswith("{") else {}


def worker(file: Path) -> Dict[str, Any]:
    """Return the status of worker:0; {} while there is none."""
    return next((dict(task) for task in status(file).get("tasks", []) if task["index"] == 0), {})


def wait(file: Path, holds: Callable[[Dict[str, Any]], Any], patience_s: float = PATIENCE_S) -> Dict[str, Any]:
    """Return the status of worker:0 once ``holds``, or the last one after the patience."""
    ends = time.monotonic() + patience_s
    while True:
        found = worker(file)
        if (found and holds(found)) or time.monotonic() > ends:
            return found
        time.sleep(0.3)


@contextlib.contextmanager
def up(file: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a run in the background, and end it."""
    with (file.parent / "up.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "launch", "up", str(file)], stdout=log, stderr=subprocess.STDOUT
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_S)


def shown(file: Path) -> str:
    """Return what `launch up` has printed."""
    return (file.parent / "up.log").read_text(errors="replace")


def metrics(file: Path) -> str:
    """Return what Prometheus would read."""
    argv = [sys.executable, "-m", "launch", "metrics", str(file), "--port", str(METRICS_PORT)]
    url = f"http://127.0.0.1:{METRICS_PORT}/metrics"
    server = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(60):
            time.sleep(0.5)
            with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=20) as answer:
                return str(answer.read().decode())
        return ""
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE_S)
