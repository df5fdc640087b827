"""Who is accused when every host is starved of processors, and nobody is at fault: make bench-starved

`launch up` over SSH starts 36.5 MB in 47 variables of odd shapes on fake hosts, a task on each, until every worker has
taken ``STEPS`` steps. The kernel gives each host a tenth of a processor: a control group with a quota of 10 ms in every
100 ms, for its sshd, its agent and its task together. The launcher is on this machine and has what it needs.

Nothing is wrong with any task. So each restart, each incident (a frozen verdict is one) and an early end of the run is
an accusation of somebody healthy: there must be none. Hosts that were not heard from for a while are listed, too.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, FrozenSet, Iterator, List, Mapping, NamedTuple, Optional

from cluster.protocol.typed_json import from_values
from launch.status.incident_status import IncidentStatus, sentence
from tests.benchmarks.launched import launched
from tests.chaos.seen import look
from tests.support.hosts import FakeHosts, Host, MissingError
from tests.support.hosts.share import share

STEPS = 4  # the first has five minutes by itself: a verdict on a step comes from the second on
POLL_S, PATIENCE_S = 1.0, 1200.0
_RUNS = "root/root/.launch/runs"


class Verdict(NamedTuple):
    """One start: seconds until every worker had taken its steps, None where that never came; whom the run accused."""

    seconds: Optional[float]
    accusations: List[str]
    silent: List[str]  # hosts that the lead did not hear, for however short a time


class Sighting(NamedTuple):
    """What was seen of a run while it was watched."""

    status: Mapping[str, Any]  # the newest
    silent: FrozenSet[str]


def start(hosts: FakeHosts, number: int, folder: Path, restart: Mapping[str, Any]) -> Verdict:
    """Start ``number`` workers and as many ps, and watch them; what an accused run wrote is copied into ``folder``."""
    began = time.monotonic()
    with launched(hosts, number, folder, restart) as up:
        *_, last = _sightings(hosts[0], folder.name, number, up)
        seconds = time.monotonic() - began
    found = accusations(last.status)
    if not stepped(last.status, number):
        found.append(f"no {STEPS} steps of every worker after {seconds:.0f} s; see up.log")
    if found:
        _keep(hosts, folder)
    return Verdict(seconds if stepped(last.status, number) else None, found, sorted(last.silent))


def _sightings(lead: Host, name: str, number: int, up: "subprocess.Popen[bytes]") -> Iterator[Sighting]:
    """Look at the run until every worker has stepped, `launch up` has ended, or patience has; at least once."""
    seen, deadline, ended = Sighting({}, frozenset()), time.monotonic() + PATIENCE_S, False
    while not (ended or stepped(seen.status, number)) and time.monotonic() < deadline:
        ended = up.poll() is not None  # before the look, which then sees the run's last status
        status = look(lead, name, None).status or seen.status
        seen = Sighting(status, seen.silent.union(status.get("silent", ())))
        yield seen
        time.sleep(POLL_S)


def stepped(status: Mapping[str, Any], number: int) -> bool:
    """Whether each of ``number`` workers has taken ``STEPS`` steps."""
    workers = [task for task in status.get("tasks", ()) if task["role"] == "worker"]
    return len(workers) == number and all((task["step"] or 0) >= STEPS for task in workers)


def accusations(status: Mapping[str, Any]) -> List[str]:
    """Return what a run's status says against anybody, a sentence each."""
    found = [f"incident: {sentence(from_values(IncidentStatus, each))}" for each in status.get("incidents", ())]
    for task in status.get("tasks", ()):
        if task["restarts"]:
            found.append(f"restarted: {task['role']}:{task['index']}@{task['host']} ({task['restarts']})")
    return found


def _keep(hosts: FakeHosts, folder: Path) -> None:
    """Copy the run's files from every host, so that they can be read when the hosts are gone."""
    for host in hosts:
        for run in Path(f"/proc/{host.init()}/{_RUNS}").glob(f"{folder.name}-*"):
            ignored = shutil.ignore_patterns("*.sock", "checkpoint")
            shutil.copytree(str(run), str(folder / host.name), ignore=ignored)


def main() -> int:
    """Return 1 where somebody was accused, 3 where this machine cannot have such hosts."""
    asked = _options()
    home = asked.logs or Path(tempfile.mkdtemp(prefix="starved-"))
    accused = 0
    try:
        with ThreadPoolExecutor(asked.jobs) as pool:
            folders = [home / f"starved-{index + 1}" for index in range(asked.starts)]
            for folder, found in zip(folders, pool.map(partial(_one, asked), folders)):
                _tell(found, folder)
                accused += bool(found.accusations)
    except MissingError as error:
        print(error, file=sys.stderr)
        return 3
    print(f"{accused} of {asked.starts} starts accused somebody healthy")
    return 1 if accused else 0


def _one(asked: argparse.Namespace, folder: Path) -> Verdict:
    """Return the verdict of one start, on hosts of its own."""
    folder.mkdir(parents=True)
    restart = {} if asked.frozen_s is None else {"frozen_s": asked.frozen_s}
    with FakeHosts(2 * asked.size) as hosts, share(hosts, asked.cores):
        for host in hosts:
            if asked.mbit:
                host.shape(asked.mbit)
        return start(hosts, asked.size, folder, restart)


def _tell(found: Verdict, folder: Path) -> None:
    when = "never" if found.seconds is None else f"{found.seconds:.0f} s"
    silent = f"; not heard for a while: {', '.join(sorted(found.silent))}" if found.silent else ""
    print(f"{folder.name}: {STEPS} steps of every worker: {when}; accused: {len(found.accusations)}{silent}")
    for each in found.accusations:
        print(f"    {each}")
    if found.accusations:
        print(f"    files: {folder}")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=2, help="how many (2)")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="how many at a time, each on hosts of its own (1)")
    parser.add_argument("--size", type=int, default=4, help="workers, and as many ps (4)")
    parser.add_argument("--cores", type=float, default=0.1, help="of each host (0.1)")
    parser.add_argument("--mbit", type=float, default=250.0, help="of every network card; 0: no limit (250)")
    parser.add_argument("--frozen-s", type=float, help="the run's restart.frozen_s, to see accusations (its default)")
    parser.add_argument("--logs", type=Path, help="folder for the files of starts (a new one in /tmp)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
