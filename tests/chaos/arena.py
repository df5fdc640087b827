"""Carrying out trials: a real launcher, real hosts as far as a program can tell, real TensorFlow."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Dict, FrozenSet, List, NamedTuple, Optional, Tuple

from tests.chaos import faults, injectors, seen, verdict
from tests.chaos.faults import CHECKPOINT, START, STEP, Fault
from tests.chaos.figures import Figures
from tests.chaos.trial import CHECKPOINT_S, PAUSE_MS, RESTART_MAX, ROWS, Trial
from tests.chaos.undisturbed import SETTINGS, undisturbed
from tests.support import ROOT
from tests.support.hosts import FakeHosts
from tests.support.launch.launcher import LAUNCH
from tests.support.launch.over_ssh import HostsFile

LOOK_S = 0.02
LAST_LINES = 15  # of launch up, which tells the report last
PATIENCE_S = 600.0  # for a whole run, on a machine that is busy
GONE_S = (
    90.0  # for hosts to be clean after it: a lease has to run out, or a host that is back to hear that nobody leads
)
EAST, WEST = "<+12>-12", "<-11>11"  # time zones, a day apart
EARLY_STEPS = 5  # of a run before this one
STALE_S = 1.2  # steps that were taken before a fault may be told so much later
JOB = Path(__file__).parent / "job" / "quadratic.py"
ENDED = (verdict.SUCCEEDED, verdict.FAILED, verdict.STOPPED)


class Result(NamedTuple):
    """What became of a trial. Of one that failed the ``story`` ends with the report; ``files`` is where all is kept."""

    trial: Trial
    complaints: List[str]
    story: List[str]
    figures: Figures
    files: Optional[Path]


class Arena:
    """Four hosts on which one trial after the other is carried out: make it once.

    Args:
      folder: where files of trials that failed are kept.
    """

    def __init__(self, hosts: FakeHosts, folder: Path):
        self.hosts, self.folder = hosts, folder
        folder.mkdir(parents=True, exist_ok=True)

    def carry_out(self, trial: Trial) -> Result:
        """One trial, from hosts that are clean to hosts that are clean."""
        for host in self.hosts:
            host.plug()
        self._clean()
        run = Run(self.hosts, trial, self.folder)
        try:
            found = run.to_its_end()
        finally:
            run.close()
        right = undisturbed(found.step or trial.steps, trial.optimizer, ROWS[trial.size])
        wrong = [*run.problems, *verdict.complaints(trial, found, right)]
        figures = Figures(trial.label, not wrong, run.notice_s, run.go_on_s, found.lost_steps)
        kept = self._keep(run, found) if wrong else None
        report = [f"up: {line}" for line in found.output.splitlines()[-LAST_LINES:]] if wrong else []
        return Result(trial, wrong, [*run.story, *report], figures, kept)

    def _keep(self, run: "Run", found: verdict.Seen) -> Path:
        place = self.folder / f"seed-{run.trial.seed}"
        shutil.rmtree(str(place), ignore_errors=True)
        place.mkdir(parents=True)
        (place / "story.txt").write_text("\n".join([str(run.trial), *run.story, "", found.output]))
        (place / "status.json").write_text(repr(found.status))
        for host in self.hosts:
            for path in seen.runs(host, run.name):
                with suppress(shutil.Error):  # a socket cannot be copied
                    shutil.copytree(str(path), str(place / host.name / path.name), symlinks=True)
        return place

    def _clean(self) -> None:
        """No files of the trial before; where it left processes, the hosts boot anew."""
        for host in self.hosts:
            if host.powered and (host.processes() or host.listening_ports()):
                host.power_cut()
            if not host.powered:
                host.power_on()
            host.run(["sh", "-c", f"umount {injectors.DISK}; nft flush ruleset"])
            rest = [injectors.TROUBLE, injectors.DISK, injectors.CLOCK]
            host.run(["rm", "-rf", "/root/.launch/runs", "/root/.launch/locks", *rest])


class Run(HostsFile):
    """One run and what it meets. ``notice_s`` and ``go_on_s``: as in ``Figures``."""

    def __init__(self, hosts: FakeHosts, trial: Trial, folder: Path):
        self.trial, self.name = trial, f"chaos-{trial.seed}"
        super().__init__(hosts, folder, self.name)
        self.story: List[str] = []
        self.problems: List[str] = []
        self.notice_s: Optional[float] = None
        self.go_on_s: Optional[float] = None
        self._began = time.monotonic()
        self._own_disk = self._met("disk-full")
        self._waiting = list(trial.faults)
        self._happened: Dict[Fault, Tuple[bool, float]] = {}
        self._later: List[Tuple[float, Any]] = []
        self._named: Dict[Fault, float] = {}
        self._stood: Optional[int] = None
        self._before = seen.Sight({}, frozenset())
        self._printed = folder / f"{self.name}.printed"
        self._write()
        self._early = self._of_another_operator() if self._met("operators") else frozenset()
        self._launcher = self._begin()

    def _write(self) -> None:
        trial = self.trial
        if self._own_disk:
            self.hosts[0].run(["mkdir", "-p", injectors.DISK])
            self.hosts[0].run(["mount", "-t", "tmpfs", "-o", "size=16m", "disk", injectors.DISK])
        checkpoint = {"every_s": CHECKPOINT_S, **({"dir": injectors.DISK} if self._own_disk else {})}
        train = {
            "mode": "async" if trial.mode == "async" else "sync", "steps": trial.steps, "towers": 1, "batch_size": 32,
            "backup_workers": int(trial.mode == "backup"), "checkpoint": checkpoint,
        }  # fmt: skip
        elastic = {"elastic": {"min_workers": 1}, "spares": [faults.SPARE]} if trial.elastic else {}
        args = {
            "pause_ms": PAUSE_MS, "optimizer": trial.optimizer, **SETTINGS[trial.optimizer]._asdict(),
            "rows": ROWS[trial.size], "trouble": injectors.TROUBLE,
        }  # fmt: skip
        ps = {"host": faults.HOST_OF[faults.PS], "count": 1 if trial.size == "small" else 2}
        cluster = {"ps": [ps], "worker": ["h1", "h2"]}
        if self._met("clock"):
            for host in self.hosts:
                injectors.put_clock(host)
            elastic["python"] = injectors.PYTHON
        restart = {"max": RESTART_MAX}
        self.put(name=self.name, job=str(JOB), args=args, cluster=cluster, train=train, restart=restart, **elastic)

    def _met(self, kind: str) -> bool:
        return any(fault.kind == kind for fault in self.trial.faults)

    def _of_another_operator(self) -> FrozenSet[str]:
        """Have a run of this name before, of an operator whose day is later; this one's is earlier. Its name."""
        self.env = {"TZ": EAST}
        self.launch_apart("up", "--set", f"train.steps={EARLY_STEPS}")
        self.env = {"TZ": WEST}
        return frozenset(path.name for path in seen.runs(self.hosts[0], self.name))

    def _begin(self) -> "subprocess.Popen[bytes]":
        with self._printed.open("wb") as printed:
            argv = [*LAUNCH, "up", str(self.file), *(["-d"] if self.trial.detached else [])]
            return subprocess.Popen(
                argv, stdout=printed, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=str(ROOT),
                env={**os.environ, **self.env},
            )  # fmt: skip

    # -- while it runs

    def to_its_end(self) -> verdict.Seen:
        """Meets the faults as their moments come; returns what was seen in the end."""
        until = time.monotonic() + PATIENCE_S
        while not self._over() and time.monotonic() < until:
            sight = seen.look(self.hosts[0], self.name, injectors.DISK if self._own_disk else None)
            self._do_what_is_due()
            if self._waiting and self._ripe(self._waiting[0], sight):
                self._meet(self._waiting.pop(0), sight)
            self._watch(sight)
            self._before = sight
            time.sleep(LOOK_S)
        if not self._over():
            self.problems.append(f"the run: expected its end within {PATIENCE_S:.0f} s, found it still there")
        return self._afterwards()

    def _over(self) -> bool:
        if self._launcher.poll() is None:
            return False
        if self._launcher.returncode == -signal.SIGKILL or (self.trial.detached and self._launcher.returncode == 0):
            return self._before.status.get("state") in ENDED or not any(map(_runs, self.hosts))
        return True

    def _ripe(self, fault: Fault, sight: seen.Sight) -> bool:
        if fault.moment == START:
            return sight.begun
        if fault.moment in (STEP, CHECKPOINT) and sight.step < fault.step:
            return False
        if fault.kind == "truncated":
            return sight.checkpoints >= 2
        if fault.moment == CHECKPOINT:
            return bool(sight.files - self._before.files) and bool(self._before.status)
        return fault.moment == STEP or sight.step >= self.trial.steps

    def _meet(self, fault: Fault, sight: seen.Sight) -> None:
        now = time.monotonic()
        place = injectors.Place(self.hosts, self.name, self._checkpoints, self._signal_launcher)
        injection = injectors.inject(fault, place)
        self._happened[fault] = (injection.hit, now)
        self._later += [(now + after_s, action) for after_s, action in injection.later]
        if injection.hit:
            self._stood, self.go_on_s = None, None
        if fault.kind == "operators":
            self._ask_from_elsewhere()
        self._tell(f"{fault}{'' if injection.hit else ' (nothing was left to hit)'}, at step {sight.step}")

    def _do_what_is_due(self) -> None:
        now = time.monotonic()
        for at, action in [later for later in self._later if later[0] <= now]:
            self._later.remove((at, action))
            action()
            self._tell("it is as before")

    def _watch(self, sight: seen.Sight) -> None:
        """Whether the faults so far are named, and training has gone on."""
        now = time.monotonic()
        for fault, (hit, at) in self._happened.items():
            if hit and fault not in self._named and verdict.is_named(sight.status, fault):
                self._named[fault] = now - at
                self.notice_s = max(self._named.values())
                self._tell(f"named after {now - at:.1f} s: {fault}")
        hits = [at for hit, at in self._happened.values() if hit]
        if not hits or self.go_on_s is not None:
            return
        at = max(hits)
        if now - at < STALE_S or self._stood is None:
            self._stood = max(self._stood or 0, sight.step)
        elif sight.step > self._stood:
            self.go_on_s = now - at
            self._tell(f"training went on after {self.go_on_s:.1f} s, at step {sight.step}")

    def _signal_launcher(self, number: int) -> bool:
        alive = self._launcher.poll() is None
        self._launcher.send_signal(number)
        return alive

    def _ask_from_elsewhere(self) -> None:
        """Have a third operator's `launch status` report the run that lives, or lived when it was asked."""
        self.env = {"TZ": EAST}
        status = self._last_status()
        if status.get("run") in (None, *self._early):
            self.problems.append(
                f"launch status: expected the run that lives, found {status.get('run')}, {status.get('state')}"
            )

    def _checkpoints(self) -> str:
        found = seen.runs(self.hosts[0], self.name)
        return f"/root/.launch/runs/{found[-1].name}/checkpoint" if found else "/nowhere"

    def _tell(self, what: str) -> None:
        self.story.append(f"[{time.monotonic() - self._began:6.1f} s] {what}")

    # -- after it

    def _afterwards(self) -> verdict.Seen:
        code = self._launcher.poll()
        self._tell("the run is over")
        lost = [host for host in self.hosts if not host.powered]
        for host in self.hosts:
            host.plug()
        for host in lost:
            host.power_on()
        left = self._left(down=any(fault.kind.startswith("power") for fault in self.trial.faults))
        status = self._last_status()
        checkpoint = status.get("checkpoint")
        step, variables = seen.saved(self.hosts[0], checkpoint and str(Path(checkpoint).parent))
        log = seen.chief_logs(self.hosts[0], self.name)
        account = next((line for line in log.splitlines() if line.startswith("gradients given by")), "")
        happened = tuple(self._happened.get(fault, (False, 0.0))[0] for fault in self.trial.faults)
        rejoined = frozenset().union(*(seen.rejoined(host, self.name) for host in self.hosts))
        return verdict.Seen(
            None if code == -signal.SIGKILL else code, self._printed.read_text(errors="replace"), status, happened,
            variables, step, account, seen.lost_steps(log), rejoined, tuple(left),
        )  # fmt: skip

    def _left(self, down: bool) -> List[str]:
        """What stays; ``down``: a host that was switched off has files of its run until ``launch down``."""
        until = time.monotonic() + GONE_S
        while any(map(_runs, self.hosts)) and time.monotonic() < until:
            time.sleep(0.2)
        if down:
            self.launch_apart("down")
        return seen.left(self.hosts)

    def _last_status(self) -> Dict[str, Any]:
        try:
            status: Dict[str, Any] = json.loads(self.launch_apart("status", "--json").stdout)  # this may be a thread
            return status
        except json.JSONDecodeError as error:
            self.problems.append(f"launch status --json: expected JSON, found {error.doc!r}")
            return {}

    def close(self) -> None:
        """Ends the launcher, if it still runs, and takes its files away."""
        if self._launcher.poll() is None:
            self._launcher.kill()
        self._launcher.wait()
        for path in (self.file, self._printed):
            with suppress(FileNotFoundError):
                path.unlink()


def _runs(host: Any) -> bool:
    """Whether a process of a run is on the host."""
    return bool(host.powered and host.processes())
