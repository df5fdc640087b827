"""A run on two hosts that are both this machine: everything but SSH is what a real cluster gets."""

import io
import os
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Callable, Dict, List, Sequence

import pytest

from cluster.protocol.settings import Restart
from cluster.protocol.typed_json import to_values
from cluster.spec.model import Spec, TaskSpec
from launch.agent.linux.sockets import free_ports
from launch.errors import CannotStart
from launch.fleet import Fleet
from launch.hosts.bundle import JobCode, launcher_code, with_folder
from launch.logs.task_logs import print_logs
from launch.plan.agent_requests import requests
from launch.plan.plan import make_plan
from launch.run.attached import Attached
from launch.run.start import start_agents
from launch.signals import Interrupts
from launch.teardown import take_down
from launch.view.plain_view import View
from tests.support.launch.laid_code import lay
from tests.support.launch.machine import left_in, living_under
from tests.support.waiting import eventually

RUN = "r-20261120-120000"
HOSTS = ("localhost", "127.0.0.1")


def neighbours() -> int:
    """The first of three ports that are free: for two tasks, and above them for the lead."""
    three = (free_ports(3) for _ in range(50))
    return next(first for first, *others in three if others == [first + 1, first + 2])


class Cluster:
    """A ps and a worker on each of two hosts, and the launcher's parts for them."""

    def __init__(self, folder: Path, command: Sequence[str]):
        self.folder = folder
        (folder / "project").mkdir()
        lay(folder / "w")
        ports = {host: neighbours() for host in HOSTS}
        tasks = [
            TaskSpec(role, index, host, f"{host}:{ports[host] + rank}", ports[host] + rank)
            for rank, role in enumerate(("ps", "worker"))
            for index, host in enumerate(HOSTS)
        ]
        self.spec = Spec(
            folder / "r.yaml",
            "r",
            tuple(tasks),
            command=tuple(command),
            restart=Restart(0, 0),
            workdir=str(folder / "w"),
        )
        job = JobCode(folder / "project", "")
        self.plan = make_plan(self.spec, job, RUN, sys.executable)
        self.code = with_folder(launcher_code(), job)
        self.requests = requests(self.plan, self.code, "token", {}, resume=False)
        self.interrupts = Interrupts()
        self.fleet = Fleet(self.spec, self.plan.python, self.code, self.interrupts)
        self.shown = io.StringIO()

    def up(self) -> Dict[str, Any]:
        """As ``launch up`` does it."""
        self.fleet.connect()
        start_agents(self.fleet, self.requests)
        attached = Attached(self.fleet, self.plan, self.requests, View(self.shown))
        status = to_values(attached.go())
        named = {host: self.fleet.reference(host, run=RUN) for host in HOSTS}
        assert take_down(self.fleet, named, reason="the run is over", interruptible=False).clean
        return status

    def up_beside(self, other: Callable[[], None]) -> Dict[str, Any]:
        """As ``up``, while ``other`` is done in a thread of its own."""
        beside = threading.Thread(target=other)
        beside.start()
        with self.fleet:
            status = self.up()
        beside.join()
        return status

    def logs(self) -> List[str]:
        said: List[str] = []
        assert print_logs(self.fleet, self.spec.tasks, said.append) == []
        return said


def test_a_run_starts_on_both_hosts_and_leaves_nothing_on_either(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["sh", "-c", "echo {role} {index}; test {role} = worker || exec sleep 1000"])
    with cluster.fleet:
        status = cluster.up()
        logs = cluster.logs()
    assert status["state"] == "succeeded"
    assert [(task["host"], task["state"]) for task in status["tasks"]] == [
        ("localhost", "stopped"), ("127.0.0.1", "stopped"), ("localhost", "succeeded"), ("127.0.0.1", "succeeded"),
    ]  # fmt: skip
    told = {"ps:0@localhost ps 0", "worker:0@localhost worker 0", "ps:1@127.0.0.1 ps 1", "worker:1@127.0.0.1 worker 1"}
    assert (len(logs), set(logs)) == (4, told)  # hosts answer in any order
    assert left_in(tmp_path) == [] and not living_under(tmp_path)


def test_a_start_that_fails_on_one_host_leaves_nothing_on_the_other(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["sleep", "1000"])
    with socket.socket() as taken, cluster.fleet:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections of an earlier test may linger there
        taken.bind(("0.0.0.0", cluster.spec.tasks[3].port))
        taken.listen(1)
        with pytest.raises(CannotStart) as caught:
            cluster.up()
    assert str(caught.value).startswith(f"127.0.0.1: port {cluster.spec.tasks[3].port} of worker:1 is taken by pid ")
    assert left_in(tmp_path) == [] and not living_under(tmp_path)


def test_a_signal_stops_both_hosts(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, ["sh", "-c", "echo up; exec sleep 1000"])

    def interrupt() -> None:
        logs = tmp_path / "w" / "runs" / RUN
        eventually("every task", lambda: len([1 for log in logs.glob("*/*.log") if log.read_text() == "up\n"]) == 4)
        cluster.interrupts.received.append(2)

    status = cluster.up_beside(interrupt)
    assert (status["state"], status["cause"]) == ("stopped", "SIGINT to launch up")
    assert {task["exit_code"] for task in status["tasks"]} == {-15}
    assert left_in(tmp_path) == [] and not living_under(tmp_path)


def kill_agent(cluster: Cluster, host: str) -> None:
    """Ends a host's agent as the kernel does when memory runs out."""
    found = cluster.fleet.ask("look", {host: cluster.fleet.reference(host, run=RUN)}, 20.0)[0][host]
    os.kill(next(each["pid"] for each in found["processes"] if "launch agent" in each["argv"]), signal.SIGKILL)


@pytest.mark.parametrize("host", HOSTS)
def test_an_agent_that_is_killed_under_an_attached_run_is_started_again_and_the_run_goes_on(
    host: str, tmp_path: Path
) -> None:
    cluster = Cluster(tmp_path, ["sh", "-c", f"echo up; while test ! -e {tmp_path}/go; do sleep 0.1; done"])
    again = {"localhost": 4, "127.0.0.1": 2}[host]  # a lead takes every task with it, a member those of its host

    def kill() -> None:
        eventually("the run that is up", lambda: "running: 4 running" in cluster.shown.getvalue())
        kill_agent(cluster, host)
        logs = tmp_path / "w" / "runs" / RUN
        eventually(
            "second attempts", lambda: len([1 for log in logs.glob("*/attempt_1.log") if log.read_text()]) == again
        )
        (tmp_path / "go").touch()

    status = cluster.up_beside(kill)
    assert (status["state"], status["cause"]) == ("succeeded", None), cluster.shown.getvalue()
    assert sum(task["restarts"] for task in status["tasks"]) == again
    assert [(each["kind"], each["host"], each["open"]) for each in status["incidents"]] == [("agent", host, False)]
    assert left_in(tmp_path) == [] and not living_under(tmp_path)
