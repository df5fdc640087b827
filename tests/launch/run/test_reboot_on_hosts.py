"""Hosts lose their power under a detached run, and boot: the run goes on by itself."""

import textwrap
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

from tests.launch.end_to_end.test_elastic_on_hosts import JOB
from tests.support.hosts import FakeHosts, Host
from tests.support.launch.lingering import lingering
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import eventually

UNITS = "/root/.config/systemd/user"
MINUTE_S = 60.0


class Detached(HostsFile):
    """The chief on h1, the ps and a worker on h2."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "detached")
        (folder / "patient.py").write_text(textwrap.dedent(JOB))
        train = {"steps": 10**6, "batch_size": 4, "checkpoint": {"every_s": 2}}
        self.put(job="patient.py", cluster={"ps": ["h2"], "worker": ["h1", "h2"]}, train=train)

    def has_trained(self, incidents: int) -> Dict[str, Any]:
        """Return the status once the run has taken steps, all of it over, after so many incidents; else nothing."""
        told = self.told()
        trains = told.get("state") == "running" and len(told["incidents"]) == incidents
        over = trains and not any(each["open"] for each in told["incidents"]) and not told["silent"]
        return told if over and (told["global_step"] or 0) > (told["checkpoint_step"] or 10**6) else {}

    def training(self, incidents: int) -> Dict[str, Any]:
        """Wait until the run trains, and return its status."""
        told: Dict[str, Any] = eventually("a run that trains", lambda: self.has_trained(incidents))
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
        run.training(incidents=0)
        for incidents, host in enumerate([hosts[1], hosts[0]], 1):
            machines.power_cycle(host)
            booted = time.monotonic()
            told = run.training(incidents)
            assert time.monotonic() - booted < MINUTE_S
            assert told["incidents"][-1]["kind"] == "agent" and told["incidents"][-1]["host"] == host.name
        down = run.launch("down")
        assert down.returncode == 0, down.stdout
        eventually("the end of the last connection", lambda: [run.left(host) for host in hosts] == [[], []])
