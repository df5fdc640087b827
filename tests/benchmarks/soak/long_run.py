"""One long run on fake hosts, with a fault every minute: what has grown, and whether its variables are right.

A ps and two workers have a host each, and a launcher is attached. Every step takes 50 ms. The job is that of the chaos
trials, with a rate so low that its variables still move when the run is stopped: steps that counted twice, or were
lost, show in them.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional

from tests.benchmarks.soak import growth, sample
from tests.benchmarks.soak.drawn import drawn
from tests.benchmarks.soak.growth import Sample
from tests.chaos import faults, injectors, seen, verdict
from tests.chaos.arena import GONE_S, JOB
from tests.chaos.faults import CHIEF, KINDS, Fault
from tests.chaos.trial import PAUSE_MS
from tests.chaos.undisturbed import Settings, undisturbed
from tests.support import ROOT
from tests.support.hosts import FakeHosts
from tests.support.launch.launcher import LAUNCH
from tests.support.launch.over_ssh import HostsFile

CHECKPOINT_S = 3
MINUTE_S, LOOK_S = 60.0, 0.2
BEGIN_S, STUCK_S, END_S = 180.0, 240.0, 120.0
MOVED = 1.4  # rate times steps: where the chaos trials end, too
RESTARTS = 10**6  # no fault of such a run is the last straw
STEEPEST = 6.0  # what a step changes a variable at most, in units of the rate
LAST_LINES = 20


def measure(minutes: int, seed: int, samples: Optional[Path]) -> int:
    """Print a row every minute, and what has grown or is wrong at the end; return the exit code."""
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    found: List[Sample] = []
    wrong = ["the soak: expected its end, found an error of its own"]
    print("\n".join(growth.head()), flush=True)
    with FakeHosts(len(faults.HOST_OF)) as hosts:
        run = LongRun(hosts, folder, minutes)
        try:
            try:
                for each in run.samples(drawn(minutes, seed)):
                    found.append(each)
                    _write(each, samples)
                wrong = run.stop()
            except KeyboardInterrupt:
                wrong = run.stop()
            except RunLost as error:
                wrong = [str(error)]
            wrong = [*wrong, *growth.grown(found)]
        finally:
            run.close(keep=bool(wrong))
    print("\n".join(["", run.summary, *(wrong or ["nothing has grown, and nothing is left"])]))
    if wrong:
        print(f"files: {folder}")
    else:
        shutil.rmtree(str(folder), ignore_errors=True)
    return 1 if wrong else 0


def _write(each: Sample, samples: Optional[Path]) -> None:
    print(growth.row(each), flush=True)
    if samples is not None:
        with samples.open("a") as file:
            file.write(json.dumps(each._asdict()) + "\n")


class RunLost(Exception):
    """The run has ended before it was stopped, or trains no more."""


class LongRun(HostsFile):
    """The run, from its start to its end."""

    def __init__(self, hosts: FakeHosts, folder: Path, minutes: int):
        super().__init__(hosts, folder, "soak")
        self.summary = ""
        self._home = folder / "home"
        self._home.mkdir()
        self.env = {"HOME": str(self._home)}
        self._settings = Settings(MOVED * PAUSE_MS / 1000 / (minutes * 60), 0.0)
        self._hits: List[Fault] = []
        self._step = 0
        self._printed = folder / "printed"
        self._write()
        with self._printed.open("wb") as printed:
            self._launcher = subprocess.Popen(
                [*LAUNCH, "up", str(self.file)], stdout=printed, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                cwd=str(ROOT), env={**os.environ, **self.env},
            )  # fmt: skip

    def _write(self) -> None:
        args = {
            "pause_ms": PAUSE_MS, "optimizer": "sgd", **self._settings._asdict(), "rows": 1,
            "trouble": injectors.TROUBLE,
        }  # fmt: skip
        checkpoint = {"every_s": CHECKPOINT_S}
        self.put(
            name="soak", job=str(JOB), args=args, cluster={"ps": ["h3"], "worker": ["h1", "h2"]},
            train={"steps": 10**9, "towers": 1, "batch_size": 32, "checkpoint": checkpoint},
            restart={"max": RESTARTS, "backoff_s": 0},
        )  # fmt: skip

    def samples(self, met: List[Fault]) -> Iterator[Sample]:
        """Meet a fault at the beginning of every minute, and look at the run before the first and after each."""
        yield self._look(0, "none yet", BEGIN_S)
        for minute, fault in enumerate(met, 1):
            until = time.monotonic() + MINUTE_S
            words = KINDS[fault.kind].words.format(fault.target)
            words += "" if self._meet(fault) else " (nothing was left to hit)"
            time.sleep(max(0.0, until - time.monotonic()))
            yield self._look(minute, words, STUCK_S)

    def _look(self, minute: int, fault: str, patience_s: float) -> Sample:
        """Return a sample of the run, once it trains."""
        status = self._wait_for_a_step(patience_s)
        values = sample.look(self.hosts, "soak", self._launcher.pid, self._home, status)
        return Sample(minute, self._step, fault, values)

    def _meet(self, fault: Fault) -> bool:
        for host in self.hosts:
            host.run(["rm", "-f", *(f"{injectors.TROUBLE}/{task.replace(':', '.')}/stayed" for task in faults.HOST_OF)])
        place = injectors.Place(self.hosts, "soak", lambda: "/nowhere", lambda number: False)
        injection = injectors.inject(fault, place)
        for after_s, action in injection.later:
            time.sleep(after_s)
            action()
        self._hits += [fault] if injection.hit else []
        return injection.hit

    def _wait_for_a_step(self, patience_s: float) -> Mapping[str, Any]:
        """Return the newest status, once its step is newer than any before. Raises RunLost where none comes."""
        until = time.monotonic() + patience_s
        while time.monotonic() < until and self._launcher.poll() is None:
            status = seen.look(self.hosts[0], "soak", None).status
            if (status.get("global_step") or 0) > self._step:
                self._step = status["global_step"]
                return status
            time.sleep(LOOK_S)
        lines = self._printed.read_text(errors="replace").splitlines()[-LAST_LINES:]
        code = self._launcher.poll()
        found = f"none within {patience_s:.0f} s" if code is None else f"that launch up ended with exit code {code}"
        raise RunLost("\n".join([f"the run: expected a step after {self._step}, found {found}", *lines]))

    def stop(self) -> List[str]:
        """Stop the run as Ctrl-C does; return what is wrong with its end."""
        self._launcher.send_signal(signal.SIGINT)
        code = self._launcher.wait(END_S)
        wrong = [] if code == 130 else [f"launch up: expected exit code 130 after Ctrl-C, found {code}"]
        until = time.monotonic() + GONE_S
        while any(host.processes() for host in self.hosts) and time.monotonic() < until:
            time.sleep(LOOK_S)
        wrong += [f"left behind: {each}" for each in seen.left(self.hosts)]
        return [*wrong, *self._of_the_model()]

    def _of_the_model(self) -> Iterator[str]:
        run = seen.runs(self.hosts[0], "soak")[-1].name
        step, variables = seen.saved(self.hosts[0], f"{seen.WORKDIR}/runs/{run}/checkpoint")
        if step is None or variables is None or step < self._step:
            yield f"the newest checkpoint: expected step {self._step} at least, found {step}"
            return
        # A chief that dies while it applies an update may have missed it.
        missed = sum(fault.target in (CHIEF, faults.HOST_OF[CHIEF]) for fault in self._hits)
        near = verdict.EXACT + missed * STEEPEST * self._settings.rate
        right = undisturbed(step, "sgd", 1, self._settings)
        self.summary = f"{step} steps, {len(self._hits)} faults, variables compared within {near:.2g}"
        yield from verdict.differences(variables, right, near)

    def close(self, keep: bool) -> None:
        """End the launcher, if it still runs; with ``keep`` the folder gets the files of the run on every host."""
        if self._launcher.poll() is None:
            self._launcher.kill()
        self._launcher.wait()
        for host in list(self.hosts) if keep else []:
            place = self.hosts.written(host) / seen.WORKDIR / "runs"
            with suppress(shutil.Error, OSError):  # a socket cannot be copied
                shutil.copytree(str(place), str(self.folder / host.name), symlinks=True)
