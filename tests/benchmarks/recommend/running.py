"""One measurement: starts the tasks of one system on fake hosts, and reads what they print.

A host for each task; the coordinator of TensorFlow 2.x has one, too, and so has the one process. Times count from the
chief's first line at or after the warm-up to one as many steps before the end, when every task is still there: the
processor time of a task that has ended is in no counter.
"""

import json
import os
import queue
import re
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Type

from tests.benchmarks.recommend.cases import HELD_OUT_BATCH, HELD_OUT_BATCHES, ROOT, Case, System
from tests.benchmarks.recommend.data import write
from tests.benchmarks.speed.memory import peaks_mb
from tests.benchmarks.speed.stamps import step_of
from tests.support.hosts import FakeHosts, Host
from tests.support.hosts.boot import wait

DATA = ROOT / "build" / "recommend"
PORT = 2222
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 180.0  # for the chief's next line
_AUC = re.compile(r"\bauc[ =:]+([0-9.]+)")
Key = Tuple[str, int]


class Pace(NamedTuple):
    """Steps in all, and how many of them are not timed, at the beginning and at the end."""

    steps: int
    warm: int

    @property
    def last(self) -> int:
        return self.steps - self.warm


class Failed(Exception):
    """A measurement that came to nothing: the chief ended, or printed nothing in time."""


class Reading(NamedTuple):
    """Counters at one moment.

    ``received`` and ``sent`` are bytes of the workers' hosts. ``used_s`` is the processor time of all tasks: unlike a
    rate, it does not depend on what else the machine does. ``busy`` is that of the whole machine, in seconds.
    """

    at_s: float
    step: int
    received: int
    sent: int
    used_s: float
    busy: float


def files(case: Case, steps: int) -> Tuple[Path, Path]:
    """Write the examples that all systems read, unless they are there; return the files of training and held out."""
    batches = steps * case.workers
    train = write(DATA / f"train-{case.batch}-{batches}.bin", batches, case.batch, seed=0)
    return train, write(DATA / "held-out.bin", HELD_OUT_BATCHES, HELD_OUT_BATCH, seed=10**9)


def measure(hosts: FakeHosts, case: Case, system: System, pace: Pace, logs: Path) -> Dict[str, Any]:
    """Return one measurement, as it is written into the results; ``logs`` is a folder for the tasks' logs.

    Raises:
      Failed: it came to nothing.
    """
    began, cores = time.monotonic(), None
    lines = Lines(pace)
    with Tasks(hosts, case, system, pace.steps, logs) as tasks:
        while lines.auc is None:
            if lines.take(*tasks.next_line()):
                lines.readings.append(_read(tasks, *lines.newest))
                cores = peaks_mb(tasks.hosts)
    first, last = lines.readings
    return {
        **rates(case, first, last),
        "auc": lines.auc,
        "first_step_s": lines.first_s - began,
        "peaks_mb": cores or {},
    }


def rates(case: Case, first: Reading, last: Reading) -> Dict[str, float]:
    """Return what two readings say of the steps between them. Bytes are those of one worker in one step."""
    steps, seconds = last.step - first.step, last.at_s - first.at_s
    return {
        "examples_per_s": steps * case.workers * case.batch / seconds,
        "steps": steps,
        "received_kb": (last.received - first.received) / steps / case.workers / 1e3,
        "sent_kb": (last.sent - first.sent) / steps / case.workers / 1e3,
        "examples_per_cpu_s": steps * case.workers * case.batch / max(last.used_s - first.used_s, 1e-9),
        "cores": (last.used_s - first.used_s) / seconds,
        "busy_cores": (last.busy - first.busy) / seconds,
    }


class Lines:
    """The chief's lines that matter: the first step, the first and last that are timed, and the area."""

    def __init__(self, pace: Pace):
        self.readings: List[Reading] = []
        self.auc: Optional[float] = None
        self.first_s = 0.0
        self.newest = (0.0, 0)
        self._pace = pace

    def take(self, at_s: float, line: str) -> bool:
        """Take one line; return whether the counters have to be read at it."""
        area = _AUC.search(line)
        if area and len(self.readings) == 2:
            self.auc = float(area[1])
        step = step_of(line)
        if step is None:
            return False
        self.first_s = self.first_s or at_s
        self.newest = (at_s, step)
        wanted = self._pace.warm if not self.readings else self._pace.last
        return len(self.readings) < 2 and step >= wanted


def _read(tasks: "Tasks", at_s: float, step: int) -> Reading:
    traffic, used = [host.traffic() for host in tasks.workers], sum(_used_s(host) for host in tasks.hosts)
    ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    busy = (sum(ticks) - ticks[3] - ticks[4]) / TICKS_PER_S
    return Reading(at_s, step, sum(each.received for each in traffic), sum(each.sent for each in traffic), used, busy)


def _used_s(host: Host) -> float:
    """Return the processor seconds of all processes of a host."""
    stats = (_stat(path) for path in Path(f"/proc/{host.init()}/root/proc").glob("[0-9]*/stat"))
    return sum(int(each[11]) + int(each[12]) for each in stats if each) / TICKS_PER_S


def _stat(path: Path) -> List[str]:
    """Return the fields of a process after its name; none if it has ended."""
    try:
        return path.read_text().rpartition(")")[2].split()
    except OSError:
        return []


class Tasks:
    """The processes of one system, from ``with`` to their end."""

    def __init__(self, hosts: FakeHosts, case: Case, system: System, steps: int, logs: Path):
        self._case, self._system, self._logs = case, system, logs
        self._steps, self._running = steps, []  # type: Tuple[int, List[subprocess.Popen[str]]]
        self._lines: queue.Queue[Tuple[float, Optional[str]]] = queue.Queue()
        keys = keys_of(case, system)
        self._hosts: Dict[Key, Host] = dict(zip(keys, hosts))
        self.chief = next(key for key in keys if key[0] == ("chief" if system.is_coordinated else "worker"))

    @property
    def hosts(self) -> List[Host]:
        return list(self._hosts.values())

    @property
    def workers(self) -> List[Host]:
        return [host for (role, _), host in self._hosts.items() if role == "worker"]

    def __enter__(self) -> "Tasks":
        try:
            for key in self._hosts:
                self._start(*key)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self._end()

    def next_line(self) -> Tuple[float, str]:
        """Return the chief's next line, and when it came."""
        try:
            at_s, line = self._lines.get(timeout=PATIENCE_S)
        except queue.Empty:
            raise Failed(f"{self._system.name}: no line within {PATIENCE_S:g} s; see {self._logs}") from None
        if line is None:
            raise Failed(f"{self._system.name}: the chief ended; see {self._logs}")
        return at_s, line

    def _start(self, role: str, index: int) -> None:
        host = self._hosts[role, index]
        host.write("/tmp/worker", str(index))
        log = (self._logs / f"{role}.{index}.log").open("wb")
        argv = ["env", *self._environment(role, index), self._system.python, "-W", "ignore", *self._argv()]
        process = host.popen(argv, stdout=subprocess.PIPE, stderr=log, text=True, bufsize=1)
        log.close()
        self._running.append(process)
        threading.Thread(target=self._listen, args=(process, role, index), daemon=True).start()

    def _argv(self) -> List[str]:
        made = self._system.argv(self._case, self._steps, *files(self._case, self._steps))
        return [each if isinstance(each, str) else json.dumps(each) for each in made]

    def _environment(self, role: str, index: int) -> List[str]:
        common = [f"PYTHONPATH={ROOT}", "PYTHONUNBUFFERED=1", "CUDA_VISIBLE_DEVICES=", "TF_CPP_MIN_LOG_LEVEL=1"]
        if not self._system.clustered:
            return common
        config = {"cluster": self._addresses(), "task": {"type": role, "index": index}}
        return [f"TF_CONFIG={json.dumps(config)}", *common]

    def _addresses(self) -> Dict[str, List[str]]:
        found: Dict[str, List[str]] = {}
        for (role, _), host in self._hosts.items():
            found.setdefault(role, []).append(f"{host.address}:{PORT}")
        return found

    def _listen(self, process: "subprocess.Popen[str]", role: str, index: int) -> None:
        with (self._logs / f"{role}.{index}.out").open("w") as kept:
            for line in process.stdout or ():
                kept.write(line)
                if (role, index) == self.chief:
                    self._lines.put((time.monotonic(), line))
        if (role, index) == self.chief:
            self._lines.put((time.monotonic(), None))

    def _end(self) -> None:
        for process in self._running:
            process.kill()
        for process in self._running:
            process.wait(PATIENCE_S)
        for host in self._hosts.values():
            left = f"{host.name}: expected its tasks to have ended, found some still there"
            wait(lambda: not host.processes(), time.monotonic() + PATIENCE_S, lambda: left)  # noqa: B023 (called at once)


def keys_of(case: Case, system: System) -> List[Key]:
    """Return (role, index) of every task, in the order of their hosts."""
    if not system.clustered:
        return [("worker", 0)]
    tasks = [("ps", index) for index in range(case.ps)] + [("worker", index) for index in range(case.workers)]
    return [*tasks, ("chief", 0)] if system.is_coordinated else tasks
