"""Trains one case in one way on fake hosts, and measures its steps.

The tasks are started as an agent starts them, under TF_CONFIG, but by nobody's launcher. A step's time is that
between two lines of progress of the chief, which are stamped here as they arrive, by the steps between them.
"""

import json
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Type

from tests.benchmarks.speed import horovod
from tests.benchmarks.speed.cases import Case, Way
from tests.benchmarks.speed.memory import peaks_mb
from tests.benchmarks.speed.stamps import Stamp, Window, step_of
from tests.support.hosts import FakeHosts, Traffic
from tests.support.hosts.boot import wait

ROOT = Path(__file__).resolve().parents[3]
PORT = 2222  # of workers; ps have the next one
PATIENCE_S = 300.0  # for the next line of any worker
ENDLESS = 10**9  # steps; what is measured is ended from here
JOB = "tests.benchmarks.speed.job"


class Pace(NamedTuple):
    """How long a measurement takes: ``warm`` steps before it, at least ``seconds`` and ``steps`` in it."""

    warm: int = 3
    seconds: float = 20.0
    steps: int = 8


class Failed(Exception):
    """A case that could not be measured: a task ended, or nothing came from the workers in time."""


class Reading(NamedTuple):
    """Counters at one moment: of every worker's host, and of the processors in ticks."""

    traffic: List[Traffic]
    busy: int
    idle: int


def measure(hosts: FakeHosts, case: Case, way: Way, pace: Pace, logs: Path) -> Dict[str, Any]:
    """One measurement, as it is written into the results; ``logs`` is a folder for the tasks' logs.

    Raises:
      Failed: it came to nothing.
    """
    began = time.monotonic()
    window = Window(case.workers, pace.warm, pace.seconds, pace.steps)
    readings = []
    with Cluster(hosts, case, way, logs) as cluster:
        while window.last is None:
            if window.told(*cluster.next_stamp()):
                readings.append(_read(hosts, case))
        peaks = peaks_mb(hosts)
    first, last = readings
    steps = window.steps if way.waits else window.steps / case.workers
    per_step = case.workers * steps
    received = sum(b.received - a.received for a, b in zip(first.traffic, last.traffic)) / per_step
    sent = sum(b.sent - a.sent for a, b in zip(first.traffic, last.traffic)) / per_step
    busy, idle = last.busy - first.busy, last.idle - first.idle
    return {
        "step_ms": 1000 * window.seconds / steps,
        "steps": window.steps,
        "received_mb": received / 1e6,
        "sent_mb": sent / 1e6,
        "busy": busy / max(1, busy + idle),
        "joined_s": window.joined_at_s - began,
        **{f"{role}_peak_mb": peak for role, peak in peaks.items()},
    }


def _read(hosts: FakeHosts, case: Case) -> Reading:
    ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = ticks[3] + ticks[4]  # waiting for a disk counts as idle
    return Reading([hosts[case.host_of("worker", n)].traffic() for n in range(case.workers)], sum(ticks) - idle, idle)


class Cluster:
    """The processes of one case, from ``with`` to its end.

    Args:
      home: a folder on the hosts in which each task has its own, as a launched task has; None: they have none.
    """

    def __init__(self, hosts: FakeHosts, case: Case, way: Way, logs: Path, home: Optional[str] = None):
        self._hosts, self._case, self._way, self._logs, self._home = hosts, case, way, logs, home
        self._stamps: queue.Queue[Tuple[int, Optional[Stamp]]] = queue.Queue()
        self._running: List[subprocess.Popen[str]] = []

    def __enter__(self) -> "Cluster":
        try:
            for index in range(0 if self._way.ring else self._case.ps):
                self._start("ps", index)
            self._start("worker", 0)
            if self._way.stock:  # its other workers look for values every 30 s only: they start once there are some
                self._stamps.put((0, self.next_stamp()[1]))
            for index in range(1, self._case.workers):
                self._start("worker", index)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._end()

    def next_stamp(self) -> Tuple[int, Stamp]:
        """The next worker that tells of a step, and what it tells."""
        try:
            worker, stamp = self._stamps.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Failed(f"no worker told of a step within {PATIENCE_S:g} s; see {self._logs}") from None
        if stamp is None:
            raise Failed(f"worker:{worker} ended; see {self._logs}")
        return worker, stamp

    def exit_codes(self) -> List[int]:
        """Waits until every task has ended by itself."""
        return [process.wait(PATIENCE_S) for process in self._running]

    def _start(self, role: str, index: int) -> None:
        host = self._hosts[self._case.host_of(role, index)]
        if self._home is not None:
            host.run(["mkdir", "-p", f"{self._home}/{role}.{index}"])
        log = (self._logs / f"{role}.{index}.log").open("wb")
        process = host.popen(self._argv(role, index), stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)
        log.close()
        self._running.append(process)
        if role == "worker":
            threading.Thread(target=self._listen, args=(process, index), daemon=True).start()

    def _listen(self, process: "subprocess.Popen[str]", index: int) -> None:
        with (self._logs / f"worker.{index}.out").open("w") as kept:
            for line in process.stdout or ():
                kept.write(line)
                step = step_of(line)
                if step is not None:
                    self._stamps.put((index, Stamp(time.monotonic(), step)))
        self._stamps.put((index, None))

    def _argv(self, role: str, index: int) -> List[str]:
        config = json.dumps({"cluster": self._addresses(), "task": {"type": role, "index": index}})
        environment = [f"TF_CONFIG={config}", f"PYTHONPATH={ROOT}", "PYTHONUNBUFFERED=1", "CUDA_VISIBLE_DEVICES="]
        python = horovod.PYTHON if self._way.ring else sys.executable
        if self._home is not None:
            environment.append(f"LAUNCH_TASK_DIR={self._home}/{role}.{index}")
        return ["env", *environment, python, "-W", "ignore", *self._program()]

    def _program(self) -> List[str]:
        case, way = self._case, self._way
        args = case.args if case.job else {"shapes": way.shapes(case)}
        if way.train is None:
            real = {"job": case.job, "batch_size": case.batch, "args": args} if case.job else args
            return ["-m", f"tests.benchmarks.{way.script}", json.dumps({"steps": ENDLESS, "waits": way.waits, **real})]
        train = {"steps": ENDLESS, "batch_size": case.batch, "towers": case.towers, **way.train}
        return ["-m", "jobs.main", case.job or JOB, "--train", json.dumps(train), "--args", json.dumps(args)]

    def _addresses(self) -> Dict[str, List[str]]:
        def address(role: str, index: int, port: int) -> str:
            return f"{self._hosts[self._case.host_of(role, index)].address}:{port}"

        case = self._case
        return {
            "worker": [address("worker", index, PORT) for index in range(case.workers)],
            "ps": [address("ps", index, PORT + 1) for index in range(case.ps)],
        }

    def _end(self) -> None:
        for process in self._running:
            process.kill()
        for process in self._running:
            process.wait(PATIENCE_S)
        # What ran inside a host is ended by the end of what entered it, a moment later.
        for host in self._hosts:
            left = f"{host.name}: expected its tasks to have ended, found some still there"
            wait(lambda: not host.processes(), time.monotonic() + PATIENCE_S, lambda: left)  # noqa: B023 (called at once)
