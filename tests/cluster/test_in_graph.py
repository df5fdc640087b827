"""One client that computes on the devices of every worker."""

from pathlib import Path

from tests.support.training.processes import Cluster
from tests.support.waiting import eventually

JOB = "tests.support.training.jobs.table"
TRAIN = {"steps": 300, "batch_size": 4, "towers": 2, "replication": "in-graph"}
ARGS = {"examples": 160, "endless": True}


def test_a_worker_that_starts_again_lends_its_devices_again_and_the_chief_goes_on(tmp_path: Path) -> None:
    with Cluster(tmp_path, JOB) as cluster:
        cluster.start_all(TRAIN, ARGS)
        reached = eventually("steps", lambda: cluster.step() > 5 and cluster.step())
        assert cluster.step("worker", 1) == 0  # it lends its devices, and is known to run
        cluster.kill("worker", 1)
        cluster.start("worker", 1, TRAIN, ARGS)
        assert cluster.finish().step == TRAIN["steps"]
        joined = [int(line.split()[-1]) for line in cluster.log("worker", 0).splitlines() if "joined" in line]
        assert joined[0] == 0 and joined[1] >= reached
        lent_tasks = cluster.outcome("worker", 1)
        assert lent_tasks is not None and lent_tasks.succeeded
