"""One look at a long run: what there is of files and processes, on its hosts and of its launcher."""

import os
import sys
import time
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Tuple

from tests.benchmarks.soak.growth import age_class
from tests.chaos import seen
from tests.chaos.faults import HOST_OF
from tests.support import ROOT
from tests.support.hosts import FakeHosts, Host

_TICKS = os.sysconf("SC_CLK_TCK")
_TEMPORARY = ("tmp", "run", "dev/shm")
# Written by sshd, by the injectors, by the job on their behalf, and by Python for what it imports: no part of the run.
_OF_OTHERS = ("var/log", "root/trouble", *(each.lstrip("/") for each in (str(ROOT), sys.prefix, sys.base_prefix)))
# A chief's attempt has a file of summaries, and every attempt its logs.
_OF_ATTEMPTS = ("attempt_", "events.out.")


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
    of_run: List[Path] = []
    others = list(_below(home))
    for host in hosts:
        run = seen.runs(host, name)[-1].name
        disk = hosts.written(host)
        for path in _below(disk):
            inside = path.relative_to(disk)
            if str(inside).startswith(f"{seen.WORKDIR}/runs/{run}/"):
                of_run.append(path)
            elif not str(inside).startswith(_OF_OTHERS):
                others.append(path)
        others += [path for each in _TEMPORARY for path in _below(Path(f"/proc/{host.init()}/root") / each)]
    attempts = [path for path in of_run if path.name.startswith(_OF_ATTEMPTS)]
    rest = [path for path in of_run if path not in set(attempts)]
    logs = sum(path.suffix == ".log" for path in attempts)
    yield from _counted("the run", rest, "files of {}", "KiB of {}")
    yield from _counted("attempts", attempts, "files of {}", "KiB of {}")
    yield from _counted("other", others, "{} files", "{} KiB")
    yield "files per attempt", len(attempts) / max(1, logs)
    for file in ("status.json", "report.json", "agent.log"):
        yield f"{file} KiB", max((_size(path) for path in of_run if path.name == file), default=0) / 1024


def _counted(what: str, paths: List[Path], count: str, size: str) -> Iterator[Tuple[str, float]]:
    yield count.format(what), len(paths)
    yield size.format(what), sum(map(_size, paths)) // 1024


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # a checkpoint that has gone meanwhile
        return 0


def _below(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(str(folder)):
        for name in names:
            path = Path(place) / name
            if path.is_file() and not path.is_symlink():
                yield path
