"""Making faults happen on fake hosts."""

import signal
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Sequence, Tuple

from tests.chaos import seen
from tests.chaos.faults import Fault
from tests.support.hosts import FakeHosts
from tests.support.hosts.host import Host

TROUBLE = "/root/trouble"  # the folder in which the job looks for what it is to meet
DISK = "/root/disk"  # where checkpoints are in a trial whose disk fills up
CLOCK = "/root/clock"  # where the Python is whose clock jumps
PYTHON = f"{CLOCK}/python"
JUMPS_S = (5 * 3600, -25 * 3600)
STAYED_S = 10.0  # for a task to have started a process
SHORT_S, LONG_S, FULL_S, POLL_S = 3.0, 25.0, 5.0, 0.05
_FILL = f"dd if=/dev/zero of={DISK}/fill bs=64k; ls {DISK}"
_TRUNCATE = 'cd "$1" && newest=$(ls -t model-*.data-* | head -1) && truncate -s 10 "$newest"'
Later = Tuple[float, Callable[[], object]]  # seconds after the fault, and what is then to be done


class Place(NamedTuple):
    """Where faults happen: the hosts, the name of the run, its checkpoint folder as its host knows it."""

    hosts: FakeHosts
    run: str
    checkpoints: Callable[[], str]
    signal_launcher: Callable[[int], bool]

    def host(self, name: str) -> Host:
        """By its name."""
        return next(host for host in self.hosts if host.name == name)


class Injection(NamedTuple):
    """``hit``: whether there was something left to hit; ``later``: what follows."""

    hit: bool
    later: Sequence[Later] = ()


def inject(fault: Fault, place: Place) -> Injection:
    """Makes a fault happen now."""
    return _INJECTORS[fault.kind](fault, place)


def _signal(name: str) -> Callable[[Fault, Place], Injection]:
    def send(fault: Fault, place: Place) -> Injection:
        host = place.host(fault.host)
        found = seen.pids(host, fault.target)
        return Injection(bool(found) and host.run(["kill", "-s", name, *found]).returncode == 0)

    return send


def _meet(trouble: str) -> Callable[[Fault, Place], Injection]:
    def write(fault: Fault, place: Place) -> Injection:
        place.host(fault.host).write(f"{TROUBLE}/{fault.target.replace(':', '.')}/{trouble}", "")
        return Injection(True)

    return write


def _agent(fault: Fault, place: Place) -> Injection:
    host = place.host(fault.host)
    pid = seen.agent(host, place.run)
    return Injection(pid is not None and host.run(["kill", "-s", "KILL", str(pid)]).returncode == 0)


def _launcher(fault: Fault, place: Place) -> Injection:
    return Injection(place.signal_launcher(signal.SIGKILL))


def _suspend(fault: Fault, place: Place) -> Injection:
    stopped = place.signal_launcher(signal.SIGTSTP)
    return Injection(stopped, [(LONG_S, lambda: place.signal_launcher(signal.SIGCONT))])


def put_clock(host: Host) -> None:
    """Give a host a Python, ``PYTHON``, whose clock can jump."""
    host.write(f"{CLOCK}/sitecustomize.py", (Path(__file__).parent / "clock" / "sitecustomize.py").read_text())
    host.write(PYTHON, f'#!/bin/sh\nPYTHONPATH={CLOCK} exec {sys.executable} "$@"\n', mode=0o755)


def _clock(fault: Fault, place: Place) -> Injection:
    place.host(fault.host).write(f"{CLOCK}/ahead_s", str(JUMPS_S[fault.step % len(JUMPS_S)]))
    return Injection(True)


def _purge(fault: Fault, place: Place) -> Injection:
    place.host(fault.host).run(["find", "/root/.launch/code", "-type", "f", "-delete"])
    return _signal("KILL")(fault, place)


def _setsid(fault: Fault, place: Place) -> Injection:
    host, folder = place.host(fault.host), f"{TROUBLE}/{fault.target.replace(':', '.')}"
    host.write(f"{folder}/setsid", "")
    until = time.monotonic() + STAYED_S
    while not host.exists(f"{folder}/stayed"):
        if time.monotonic() > until:
            return Injection(False)
        time.sleep(POLL_S)
    return _signal("KILL")(fault, place)


def _nothing(fault: Fault, place: Place) -> Injection:
    return Injection(True)


def _power(fault: Fault, place: Place) -> Injection:
    place.host(fault.host).power_cut()
    return Injection(True)


def _power_returns(fault: Fault, place: Place) -> Injection:
    host = place.host(fault.host)
    host.power_cut()
    return Injection(True, [(LONG_S, host.power_on)])


def _cable(fault: Fault, place: Place) -> Injection:
    place.host(fault.host).unplug()
    return Injection(True)


def _cable_for(seconds: float) -> Callable[[Fault, Place], Injection]:
    def cut(fault: Fault, place: Place) -> Injection:
        host = place.host(fault.host)
        host.unplug()
        return Injection(True, [(seconds, host.plug)])

    return cut


def _disk_full(fault: Fault, place: Place) -> Injection:
    host = place.host(fault.host)
    host.run(["sh", "-c", _FILL])
    return Injection(True, [(FULL_S, lambda: host.run(["rm", "-f", f"{DISK}/fill"]))])


def _folder_gone(fault: Fault, place: Place) -> Injection:
    return Injection(place.host(fault.host).run(["rm", "-rf", place.checkpoints()]).returncode == 0)


def _truncated(fault: Fault, place: Place) -> Injection:
    cut: List[str] = ["sh", "-c", _TRUNCATE, "sh", place.checkpoints()]
    place.host("h1").run(cut)
    return _signal("KILL")(fault, place)


_INJECTORS: Dict[str, Callable[[Fault, Place], Injection]] = {
    "none": _nothing,
    "kill": _signal("KILL"),
    "raise": _meet("raise_once"),
    "fail": _meet("raise"),
    "nan": _meet("nan"),
    "freeze": _signal("STOP"),
    "hang": _meet("hang"),
    "agent": _agent,
    "agent-detached": _agent,
    "launcher": _launcher,
    "launcher-detached": _nothing,
    "power": _power,
    "power-elastic": _power,
    "power-returns": _power_returns,
    "cable-short": _cable_for(SHORT_S),
    "cable": _cable,
    "cable-elastic": _cable,
    "cable-returns": _cable_for(LONG_S),
    "disk-full": _disk_full,
    "folder-gone": _folder_gone,
    "clock": _clock,
    "operators": _nothing,
    "purge": _purge,
    "setsid": _setsid,
    "suspend": _suspend,
    "truncated": _truncated,
}
