"""How long `launch up` and `launch down` take on 64 hosts, beside Fabric's own group: make bench-hosts

All three are timed in turn on the same hosts, several rounds, so that whatever else runs on
this machine slows them alike. The group's time is that of ``ThreadingGroup.run("true")``
alone; the launcher's are those of whole commands, from the shell's fork to their exit. Beside each
stands the processor time of its own process and of what it made the hosts do.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Sequence, Set

from launch.agent.linux.processes import table
from tests.support.hosts import FakeHosts

ROUNDS = 5
PATIENCE_S = 120.0
UP_LIMIT, DOWN_LIMIT = 2.5, 2.0
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """Seconds on the clock, and of the processor here and on the hosts."""

    wall_s: float
    here_s: float
    hosts_s: float


class Bench:
    """Fake hosts and a hosts file that gives each of them one trivial task."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        self.hosts, self.file = hosts, folder / "hosts.yaml"
        values = {
            "name": "fanout",
            "command": ["sleep", "1000"],
            "cluster": {"worker": [f"h[1-{len(hosts)}]"]},
            "python": sys.executable,
            "ssh": {"config": str(hosts.ssh_config), "known_hosts": str(hosts.known_hosts)},
        }
        self.file.write_text(json.dumps(values))

    def group(self) -> float:
        """Seconds that Fabric's group needs for ``true`` on every host, its own import left out."""
        names = [host.name for host in self.hosts]
        program = [sys.executable, "-m", "tests.benchmarks.fanout", "--group", str(self.hosts.ssh_config), *names]
        ran = subprocess.run(program, stdout=subprocess.PIPE, check=True, timeout=PATIENCE_S)
        return float(ran.stdout)

    def launch(self, *arguments: str) -> float:
        """Seconds that a verb needs, from start to exit."""
        began = time.monotonic()
        argv = [sys.executable, "-m", "launch", *arguments, str(self.file)]
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, timeout=PATIENCE_S)
        return time.monotonic() - began

    def cost(self, what: Callable[[], float]) -> Cost:
        """What ``what`` costs; it returns how long it took."""
        here, there = _used_here_s(), self._used_there_s()
        wall = what()
        return Cost(wall, _used_here_s() - here, self._used_there_s() - there)

    def _used_there_s(self) -> float:
        """Processor time of every process that is, or was, on a host."""
        parents = {process.pid: process.parent for process in table()}
        inits = {host.init() for host in self.hosts}
        return sum([_used_s(pid) for pid in parents if _below(pid, parents, inits)])


def _below(pid: int, parents: Dict[int, int], inits: Set[int]) -> bool:
    while pid in parents and pid not in inits:
        pid = parents[pid]
    return pid in inits


def _used_s(pid: int) -> float:
    """Processor time of a process and of its children that it has waited for."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0.0
    return sum(map(int, text[text.rindex(")") + 2 :].split()[11:15])) * _TICK_S


def _used_here_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_group(config: str, names: Sequence[str]) -> None:
    """``true`` on every host through Fabric's ThreadingGroup; prints how long that took."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import fabric
    began = time.monotonic()
    group = fabric.ThreadingGroup(*names, config=fabric.Config(runtime_ssh_path=config))
    group.run("true", hide=True)
    print(time.monotonic() - began)
    group.close()


def measure(bench: Bench, rounds: int) -> None:
    """Prints each round and the medians of the ratios."""
    ratios: Dict[str, List[float]] = {"up": [], "down": []}
    print(f"{'round':8}{'':8}{'wall':>8}{'here':>8}{'hosts':>8}{'ratio':>8}")
    for number in range(rounds):
        group = bench.cost(bench.group)
        _tell(number, "group", group, group)
        for verb, arguments in (("up", ["up", "-d"]), ("down", ["down"])):
            cost = bench.cost(lambda: bench.launch(*arguments))  # noqa: B023 (called at once)
            ratios[verb].append(cost.wall_s / group.wall_s)
            _tell(number, verb, cost, group)
    for verb, limit in (("up", UP_LIMIT), ("down", DOWN_LIMIT)):
        print(f"{verb}: {statistics.median(ratios[verb]):.2f} times the group (median), at most {limit}")


def _tell(number: int, what: str, cost: Cost, group: Cost) -> None:
    ratio = cost.wall_s / group.wall_s
    print(f"{number:<8}{what:8}{cost.wall_s:8.2f}{cost.here_s:8.2f}{cost.hosts_s:8.2f}{ratio:8.2f}", flush=True)


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--group", nargs="+", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.group:
        run_group(asked.group[0], asked.group[1:])
        return
    with FakeHosts(asked.hosts) as hosts, tempfile.TemporaryDirectory() as folder:
        measure(Bench(hosts, Path(folder)), asked.rounds)


if __name__ == "__main__":
    main()
