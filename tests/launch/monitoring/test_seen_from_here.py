"""A run on another host as TensorBoard and Prometheus see it from this machine, over real SSH.

One host and one run on it, which goes on until the tests end it.
"""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ContextManager, Dict, Iterator, Sequence, Set

import pytest

from tests.launch.monitoring.web import fetch, served
from tests.support import ROOT
from tests.support.hosts import FakeHosts
from tests.support.hosts.fixture import hosts_here
from tests.support.hosts.host import Host
from tests.support.launch.jobs import CALM
from tests.support.launch.launcher import LAUNCH
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import eventually

# A launcher that waited for a lost host's answer would outlast the patience of the test.
LONGER = "from launch.monitoring import newest_state as asks; asks.ANSWER_S = 1e3; from launch import cli; cli.main()"
WAITS_LONG = [sys.executable, "-c", LONGER]
STEP = 'launch_step{name="seen"}'
LOST = {'launch_up{host="h1",name="seen"}': 0.0}


class Seen(HostsFile):
    """The host h1, and a hosts file whose tasks are all there."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "seen")
        self.host: Host = hosts[0]
        (folder / "calm.py").write_text(CALM)
        train = {"steps": 1000000, "batch_size": 2}
        self.put(job="calm.py", cluster={"ps": ["h1"], "worker": ["h1"]}, train=train)

    def says(self, *arguments: str) -> str:
        """What ``launch VERB seen.yaml …`` prints, after its end with 0."""
        ran = self.launch(*arguments)
        assert ran.returncode == 0, ran.stdout
        return ran.stdout

    def serving(self, verb: str, program: Sequence[str] = LAUNCH) -> ContextManager[str]:
        """The URL that a verb serves until Ctrl-C."""
        argv = [*program, verb, str(self.file), "--port", "0"]
        return served(
            subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, cwd=str(ROOT)
            )
        )

    def boards(self) -> int:
        """Processes of TensorBoard on the host."""
        return sum("board_curve.py" in " ".join(process.argv) for process in self.host.processes())


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    with hosts_here(1) as hosts:
        seen = Seen(hosts, tmp_path_factory.mktemp("seen"))
        seen.says("up", "-d")
        yield seen


def samples(text: str) -> Dict[str, float]:
    """{metric with its labels: value}"""
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {sample: float(value) for sample, value in lines}


@contextmanager
def unplugged(host: Host) -> Iterator[None]:
    host.unplug()
    try:
        yield
    finally:
        host.plug()


def shows_loss(url: str) -> bool:
    """Whether TensorBoard has the chief's loss. It reads the files a while after it listens."""
    tags: Dict[str, Any] = json.loads(fetch(url + "data/plugin/scalars/tags"))
    return "loss" in tags.get("summaries", {})


def past(url: str, step: float) -> Dict[str, float]:
    """What is served once the run is past a step; nothing before."""
    read = samples(fetch(url))
    return read if read.get(STEP, 0) > step else {}


def test_prometheus_reads_the_step_as_it_grows_and_what_a_lost_cable_leaves_of_it(seen: Seen) -> None:
    with seen.serving("metrics") as url:
        first = eventually("a step", lambda: past(url, 0))
        assert first['launch_task_up{host="h1",name="seen",role="worker",task="worker:0"}'] == 1
        assert first['launch_tasks{name="seen",role="ps",state="running"}'] == 1
        eventually("a further step", lambda: past(url, first[STEP]))
        received = 'launch_task_received_bytes_per_second{host="h1",name="seen",role="worker",task="worker:0"}'
        eventually("bytes from the ps", lambda: samples(fetch(url)).get(received, 0) > 0)
        with unplugged(seen.host):
            eventually("the loss", lambda: samples(fetch(url)) == LOST)
        eventually("the host again", lambda: past(url, first[STEP]))


def test_metrics_ends_at_once_also_while_it_waits_for_a_lost_host(seen: Seen) -> None:
    with unplugged(seen.host), seen.serving("metrics", WAITS_LONG) as never:
        assert samples(fetch(never)) == LOST
    try:
        with seen.serving("metrics", WAITS_LONG) as url:
            eventually("an answer", lambda: samples(fetch(url)) != LOST)
            seen.host.unplug()
            eventually("the loss", lambda: samples(fetch(url)) == LOST)
    finally:
        seen.host.plug()


def test_tensorboard_shows_the_loss_through_ssh_outlives_the_run_and_leaves_nothing_on_the_host(seen: Seen) -> None:
    with seen.serving("board") as url:
        assert seen.boards() == 1
        eventually("the loss", lambda: shows_loss(url))
        assert "summaries" in json.loads(fetch(url + "data/runs"))
        assert reachable(seen.host) == {22, 2222, 2223}  # sshd, and the two tasks
        seen.says("down")
        assert shows_loss(url)
    eventually("the end of TensorBoard", lambda: not seen.host.processes())


def reachable(host: Host) -> Set[int]:
    """Ports that listen on more than the loopback."""
    places = [line.split()[3].rsplit(":", 1) for line in host.run(["ss", "-Hltn"]).stdout.splitlines()]
    return {int(port) for address, port in places if not address.startswith(("127.", "[::1]"))}


def test_prometheus_reads_how_a_run_has_ended(seen: Seen) -> None:
    seen.says("down")
    with seen.serving("metrics") as url:
        stopped = 'launch_run_state{name="seen",state="stopped"}'
        eventually("its state", lambda: samples(fetch(url)).get(stopped) == 1)
