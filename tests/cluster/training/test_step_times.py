"""Workers leave their step times on a server, and the chief's summaries show them by the names of the workers."""

from pathlib import Path
from typing import Any

from cluster.runtime.tf_compat import tf
from cluster.task import Task
from cluster.training import summaries
from cluster.training.run_steps import worker_names
from tests.support.training.alone import train_alone
from tests.support.training.jobs import table


def test_step_times_are_named_by_task_in_the_order_of_the_workers() -> None:
    task = Task("chief", 0, {"ps": ["a:1"], "chief": ["b:1"], "worker": ["c:1", "d:1"]})
    assert worker_names(task) == ["chief_0", "worker_0", "worker_1"]


def test_the_summaries_of_a_run_have_the_step_time_of_its_worker(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(summaries, "EVERY_S", 0.0)
    assert train_alone(table, tmp_path, {"examples": 32}, steps=4, batch_size=8, towers=1).succeeded
    (path,) = (tmp_path / "summaries").iterdir()
    shown = [value for event in tf.train.summary_iterator(str(path)) for value in event.summary.value]
    times = [value.simple_value for value in shown if value.tag == "step_time_ms/worker_0"]
    assert len(times) == 4 and times[-1] > 0
