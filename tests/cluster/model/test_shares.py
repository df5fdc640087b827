"""A step's gradient is that of the mean over all examples, whichever worker has how many of them."""

import threading
from pathlib import Path
from typing import Any, Dict, List

import pytest

from cluster.spec import load
from cluster.task import Task, Train
from tests.support.training.threads import ThreadedRun

TWO_WORKERS = "job: x\ncluster: {ps: [localhost], worker: [localhost, localhost]}\n"


class Run(ThreadedRun):
    """Its workers' threads have the names of their tasks."""

    def _train(self, task: Task) -> None:
        threading.current_thread().name = task.name
        super()._train(task)


def trained(folder: Path, args: Dict[str, Any], **settings: Any) -> float:
    """Where ``w`` is after the run: gradient descent with rate 1 puts it onto the last step's mean."""
    path = folder / "hosts.yaml"
    path.write_text(TWO_WORKERS)
    train = Train.from_dict({"batch_size": 2, **settings})
    run = Run(load(path), "tests.support.training.jobs.unlike", train, args, folder / "checkpoints")
    return float(run.start().finish()["w"])


def devices(settings: Train) -> List[str]:
    """Worker 0 has two towers, all others one."""
    return ["CPU:0", "CPU:1"] if threading.current_thread().name in ("worker:0", "MainThread") else ["CPU:0"]


@pytest.mark.parametrize("sync", ["overlapped", "plain"])
def test_a_worker_with_two_towers_counts_for_two(tmp_path: Path, monkeypatch: Any, sync: str) -> None:
    monkeypatch.setattr("cluster.model.device_pool.tower_devices", devices)
    assert trained(tmp_path, {}, steps=2, sync=sync) == pytest.approx((2 * 1.0 + 4.0) / 3)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_each_example_counts_once_where_batches_vary_in_size(tmp_path: Path, steps: int) -> None:
    sizes = [[4, 2, 1], [4, 1, 6]]
    here, there = (of_worker[steps - 1] for of_worker in sizes)
    found = trained(tmp_path, {"sizes": sizes}, steps=steps)
    assert found == pytest.approx((here * 1.0 + there * 4.0) / (here + there))


def test_accumulated_batches_are_one_mean(tmp_path: Path) -> None:
    assert trained(tmp_path, {}, steps=1, accumulate=3) == pytest.approx(2.5)
