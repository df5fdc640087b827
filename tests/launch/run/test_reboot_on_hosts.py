"""Hosts lose their power under a detached run, and boot: the run goes on by itself."""

import time
from pathlib import Path
from typing import Any, Callable, Dict, List

from tests.support.hosts import FakeHosts, Host
from tests.support.launch.lingering import lingering
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import eventually

UNITS = "/root/.config/systemd/user"
MINUTE_S = 60.0


class Detached(HostsFile):
    """A program whose first task is on h1, where the lead is, and two more on h2."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "detached")
        self.put(command=["sleep", "100000"], cluster={"ps": ["h2"], "worker": ["h1", "h2"]})

    def is_up(self, incidents: int) -> Dict[str, Any]:
        """Return the status once every task of the run is up, after so many incidents; else nothing."""
        told = self.told()
        is_up = told.get("state") == "running" and len(told["incidents"]) == incidents and not told["silent"]
        over = is_up and not any(each["open"] for each in told["incidents"])
        return told if over and all(map(self.has_its_tasks, self.hosts)) else {}

    def has_its_tasks(self, host: Host) -> bool:
        """Whether each task of a host is up, and its program runs."""
        tasks = [task for task in self.told()["tasks"] if task["host"] == host.name]
        programs = [process for process in host.processes() if list(process.argv) == ["sleep", "100000"]]
        return all(task["state"] == "running" for task in tasks) and len(programs) == len(tasks)

    def up(self, incidents: int) -> Dict[str, Any]:
        """Wait until every task is up, and return the status."""
        told: Dict[str, Any] = eventually("every task", lambda: self.is_up(incidents))
        return told

    def left(self, host: Host) -> List[str]:
        """Return the processes of the run on a host, and what would start some at a boot."""
        living = [" ".join(process.argv) for process in host.processes() if "systemd" not in process.argv[0]]
        return living + host.run(["find", UNITS, "-name", "launch-*"]).stdout.splitlines()


def test_a_detached_run_goes_on_after_reboots_of_a_member_and_of_the_leads_host(
    fake_hosts: Callable[[int], FakeHosts], tmp_path: Path
) -> None:
    hosts = fake_hosts(2)
    with lingering(list(hosts)) as machines:
        run = Detached(hosts, tmp_path)
        up = run.launch("up", "-d")
        assert up.returncode == 0 and "reboot" not in up.stdout, up.stdout
        run.up(incidents=0)
        for incidents, host in enumerate([hosts[1], hosts[0]], 1):
            machines.power_cycle(host)
            booted = time.monotonic()
            told = run.up(incidents)
            assert time.monotonic() - booted < MINUTE_S
            assert told["incidents"][-1]["kind"] == "agent" and told["incidents"][-1]["host"] == host.name
        down = run.launch("down")
        assert down.returncode == 0, down.stdout
        eventually("the end of the last connection", lambda: [run.left(host) for host in hosts] == [[], []])
