"""One look at a long run: what there is of files and processes, on its hosts and of its launcher."""

import os
import re
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from tests.benchmarks.soak.files import below, size, sizes
from tests.benchmarks.soak.growth import age_class
from tests.chaos import seen
from tests.chaos.faults import HOST_OF
from tests.support import ROOT
from tests.support.hosts import FakeHosts, Host

_TICKS = os.sysconf("SC_CLK_TCK")
_TEMPORARY = ("tmp", "run", "dev/shm")
# Of the sources themselves, and of Python for what it imports.
_SOURCES = tuple(each.lstrip("/") for each in (str(ROOT), sys.prefix, sys.base_prefix))
# Written by sshd, by the injectors, and by the job on their behalf: no part of the run.
_OF_OTHERS = ("var/log", "root/trouble", *_SOURCES)
_CODE = f"{seen.WORKDIR}/code/"
# A chief's attempt has a file of summaries, and every attempt its logs.
_OF_ATTEMPTS = ("attempt_", "events.out.")
_AUTOGRAPH = re.compile(r"tmp/(__pycache__/)?tmp\w+[.\w-]*\.pyc?$")  # of TensorFlow, which leaves them if it is killed


class Footprint(NamedTuple):
    """What one process holds."""

    descriptors: int
    threads: int
    rss_kib: int
    age_s: float


def look(hosts: FakeHosts, name: str, launcher: int, home: Path, status: Mapping[str, Any]) -> Dict[str, float]:
    """Return all numbers by name. ``home``: of the launcher; ``status``: the newest of the run."""
    found: Dict[str, float] = {"incidents": len(status.get("incidents") or [])}
    found.update(_files(hosts, name, home))
    found["processes"] = sum(len(host.processes()) for host in hosts)
    found.update(_named("launcher {}", footprint(Path("/proc"), launcher), aged=False))
    for host in hosts:
        found.update(_agents(host, name))
    for task, place in HOST_OF.items():
        host = next(host for host in hosts if host.name == place)
        found.update(_named(f"{task} task {{}}", _largest(host, seen.pids(host, task)), memory="KiB"))
    return found


def footprint(proc: Path, pid: int) -> Optional[Footprint]:
    """Return what a process holds; None where it has ended."""
    place = proc / str(pid)
    try:
        pairs = (line.partition(":") for line in (place / "status").read_text().splitlines())
        status = {key: value.split() for key, _, value in pairs}
        age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - int(_stat(place)[19]) / _TICKS
        descriptors = len(os.listdir(str(place / "fd")))
        return Footprint(descriptors, int(status["Threads"][0]), int(status["VmRSS"][0]), age_s)
    except (OSError, KeyError):
        return None


def _stat(place: Path) -> List[str]:
    return (place / "stat").read_text().rpartition(")")[2].split()


def _named(
    name: str, found: Optional[Footprint], aged: bool = True, memory: str = "KiB in memory"
) -> Iterator[Tuple[str, float]]:
    if found is not None:
        age = f", {age_class(found.age_s)}" if aged else ""
        for quantity, value in (
            ("descriptors", found.descriptors),
            ("threads", found.threads),
            (memory, found.rss_kib),
        ):
            yield name.format(quantity) + age, value


def _agents(host: Host, name: str) -> Iterator[Tuple[str, float]]:
    """Yield what the host's agent and its keeper hold."""
    pid, proc = seen.agent(host, name), _proc(host)
    if pid is None:
        return
    yield from _named(f"{host.name} agent {{}}", footprint(proc, pid))
    try:
        keeper = int(_stat(proc / str(pid))[1])
    except OSError:
        return
    yield from _named(f"{host.name} keeper {{}}", footprint(proc, keeper))


def _largest(host: Host, pids: Iterable[str]) -> Optional[Footprint]:
    """Return the largest of a task's processes: a job may have started others."""
    found: List[Footprint] = [each for each in (footprint(_proc(host), int(pid)) for pid in pids) if each is not None]
    return max(found, key=lambda each: each.rss_kib) if found else None


def _proc(host: Host) -> Path:
    return Path(f"/proc/{host.init()}/root/proc")


def _files(hosts: FakeHosts, name: str, home: Path) -> Iterator[Tuple[str, float]]:
    kinds: Dict[str, List[Path]] = {kind: [] for kind in ("run", "attempts", "code", "bytecode", "autograph")}
    kinds["other"] = list(below(home))
    for host in hosts:
        run = f"{seen.WORKDIR}/runs/{seen.runs(host, name)[-1].name}/"
        for inside, path in _written(hosts, host):
            kinds[_kind(inside, run)].append(path)
    logs = sum(path.suffix == ".log" for path in kinds["attempts"])
    yield from _counted("the run", kinds["run"], "files of {}", "KiB of {}")
    yield from _counted("attempts", kinds["attempts"], "files of {}", "KiB of {}")
    yield from _counted("code", kinds["code"], "files of {}", "KiB of {}")
    yield from _counted("other", kinds["other"], "{} files", "{} KiB")
    yield "files per attempt", len(kinds["attempts"]) / max(1, logs)
    yield "files of AutoGraph per attempt", len(kinds["autograph"]) / max(1, logs)
    for file in ("status.json", "report.json", "agent.log"):
        yield f"{file} KiB", max((size(path) for path in kinds["run"] if path.name == file), default=0) / 1024


def _written(hosts: FakeHosts, host: Host) -> Iterator[Tuple[str, Path]]:
    """Yield what was written on a host, to its disk and to its memory, with the path that it has there."""
    disk, root = hosts.written(host), Path(f"/proc/{host.init()}/root")
    places = [(disk, disk), *((root, root / each) for each in _TEMPORARY)]
    for top, place in places:
        for path in below(place, leave_out=[top / each for each in _OF_OTHERS]):
            yield str(path.relative_to(top)), path


def _kind(inside: str, run: str) -> str:
    if inside.startswith(run):
        return "attempts" if os.path.basename(inside).startswith(_OF_ATTEMPTS) else "run"
    if inside.startswith(_CODE):
        return "bytecode" if "__pycache__" in inside else "code"  # an agent that follows another imports more
    return "autograph" if _AUTOGRAPH.match(inside) else "other"


def _counted(what: str, paths: List[Path], count: str, kib: str) -> Iterator[Tuple[str, float]]:
    found = sizes(paths)
    yield count.format(what), found.number
    yield kib.format(what), found.kib
