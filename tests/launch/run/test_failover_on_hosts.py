"""The chief's host loses its power under an attached elastic run: what a checkpoint had saved is not lost."""

import re
import textwrap
from pathlib import Path
from typing import Callable

from tests.launch.end_to_end.test_elastic_on_hosts import JOB
from tests.support.hosts import FakeHosts
from tests.support.launch.over_ssh import HostsFile
from tests.support.waiting import PATIENCE_S, eventually

STEPS = 300


class Replicated(HostsFile):
    """Three hosts: the chief on h1, the ps and the copies on h2, a worker on h3."""

    def __init__(self, hosts: FakeHosts, folder: Path):
        super().__init__(hosts, folder, "replicated")
        (folder / "patient.py").write_text(textwrap.dedent(JOB))
        train = {"steps": STEPS, "batch_size": 4, "checkpoint": {"every_s": 2, "replicas": 1}}
        cluster = {"ps": ["h2"], "worker": ["h1", "h3"]}
        self.put(job="patient.py", cluster=cluster, train=train, elastic={"min_workers": 1})

    def copied(self) -> int:
        """The step of the copy on h2; 0 before there is one."""
        return (self.told().get("replicas") or {}).get("h2") or 0


def test_the_run_is_begun_again_on_the_other_hosts_from_the_newest_copy(
    fake_hosts: Callable[[int], FakeHosts], tmp_path: Path
) -> None:
    run = Replicated(fake_hosts(3), tmp_path)
    up = run.start("up")
    try:
        saved = eventually("a copy on h2", run.copied)
        run.hosts[0].power_cut()
        for host in list(run.hosts)[1:]:
            host.write("/root/enough", "")  # what is left may end quickly
        output, _ = up.communicate(timeout=2 * PATIENCE_S)
    finally:
        up.kill()
    assert up.returncode == 0, output
    assert "continuing without h1, from the newest copy of the checkpoints, with the chief on h3" in output
    brought = re.search(r"continuing from the checkpoint of step (\d+) of \S+ on h2: .* to h3", output)
    assert brought is not None and int(brought[1]) >= saved, output
    assert f"succeeded: step {STEPS}" in output
    assert re.search(rf"checkpoint of step {STEPS}: h3:/root/.launch/runs/replicated-\d+-\d+/checkpoint/", output)
