"""Whole runs of real task processes, which are killed: the ledger has every example once an epoch."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Dict, Iterable

import numpy as np
import pytest

from cluster.errors import JobError
from cluster.job import Job
from cluster.model import device_pool
from cluster.protocol.outcome import Outcome
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from tests.support.nightly import few
from tests.support.training.jobs import ledger
from tests.support.training.processes import Cluster
from tests.support.waiting import eventually

JOB = "tests.support.training.jobs.ledger"
EXAMPLES, WORKERS = 1500, 2


def args_of(folder: Path, **more: Any) -> Dict[str, Any]:
    (folder / "data").mkdir()
    ledger.write(str(folder / "data"), EXAMPLES, files=7)
    return {"files": str(folder / "data"), "examples": EXAMPLES, "workers": 3, "shard_bytes": 600, **more}


def train_of(folder: Path, **more: Any) -> Dict[str, Any]:
    return {"batch_size": 8, "checkpoint": {"dir": str(folder / "saved"), "every_s": 1}, **more}


def check_ledger(outcome: Outcome, epochs: int) -> None:
    reader = tf.train.load_checkpoint(outcome.checkpoint)
    counts = reader.get_tensor("ledger").reshape([-1, EXAMPLES]).sum(0)
    np.testing.assert_allclose(counts, np.full(EXAMPLES, epochs), atol=1e-3)
    np.testing.assert_allclose(reader.get_tensor("steps"), outcome.step, rtol=1e-3)  # each a mean over examples
    assert (reader.get_tensor("shards/progress") == [epochs, 0]).all()


def reaches(cluster: Cluster, step: int, workers: Iterable[int] = range(WORKERS)) -> None:
    eventually(f"step {step}", lambda: all(cluster.step("worker", index) >= step for index in workers))


def test_killed_workers_a_killed_chief_and_a_killed_ps_lose_and_repeat_no_example(tmp_path: Path) -> None:
    train, args = train_of(tmp_path, epochs=2), args_of(tmp_path, shuffle=20, pause_ms=20)
    with Cluster(tmp_path, JOB, ps=2, workers=WORKERS) as cluster:
        cluster.start_all(train, args)
        for role, index in (("worker", 1), ("worker", 0), ("ps", 0)):
            before = max(cluster.step("worker", 0), 1)
            reaches(cluster, before + 15)
            cluster.kill(role, index)
            cluster.start(role, index, train, args)
        outcome = cluster.finish()
        joined = [int(step) for step in re.findall(r"^joined at step (\d+)", cluster.log("worker", 0), re.MULTILINE)]
        progress = cluster.progress("worker", 0)
    check_ledger(outcome, epochs=2)
    assert joined[0] == 0 and len(joined) == 3 and min(joined[1:]) > 0  # the second chief joined twice
    assert progress is not None and (progress.joins, progress.joined_step) == (2, joined[2])


def test_a_run_goes_on_in_the_middle_of_the_data_with_other_workers_and_servers(tmp_path: Path) -> None:
    train, args = train_of(tmp_path, epochs=1), args_of(tmp_path, kind="sparse")
    with Cluster(tmp_path / "first", JOB, ps=1, workers=1) as cluster:
        cluster.start_all({**train, "steps": 40}, args)
        assert cluster.finish().step == 40
    with Cluster(tmp_path / "second", JOB, ps=2, workers=3) as cluster:
        cluster.start_all(train, args)
        outcome = cluster.finish()
    assert outcome.step is not None and outcome.step < 40 + EXAMPLES / 8
    check_ledger(outcome, epochs=1)
    with Cluster(tmp_path / "third", JOB, ps=1, workers=1) as cluster:
        cluster.start_all(train, args)
        assert cluster.finish().step == outcome.step  # nothing is left to train


def excess(outcome: Outcome, epochs: int) -> float:
    """How often examples were trained beyond the epochs; none was trained less often."""
    counts = ledger.counts(str(outcome.checkpoint), EXAMPLES)
    assert counts.min() > epochs - 1e-3
    assert (tf.train.load_checkpoint(outcome.checkpoint).get_tensor("shards/progress") == [epochs, 0]).all()
    return float((counts - epochs).sum())


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["lines", "embedding"])
def test_asynchronous_workers_train_every_example_once_and_each_batch_as_a_mean(kind: str, tmp_path: Path) -> None:
    train, args = train_of(tmp_path, epochs=1, mode="async"), args_of(tmp_path, kind=kind, shuffle=20, pause_ms=5)
    with Cluster(tmp_path, JOB, ps=2, workers=WORKERS) as cluster:
        cluster.start_all(train, args)
        outcome = cluster.finish()
    assert abs(excess(outcome, epochs=1)) < 1e-2
    steps = tf.train.load_checkpoint(outcome.checkpoint).get_tensor("steps")
    np.testing.assert_allclose(steps, outcome.step, rtol=1e-3)


def test_a_killed_asynchronous_worker_or_chief_repeats_a_batch_at_most_and_names_it(tmp_path: Path) -> None:
    train, args = train_of(tmp_path, epochs=1, mode="async"), args_of(tmp_path, kind="embedding", pause_ms=20)
    with Cluster(tmp_path, JOB, ps=2, workers=WORKERS) as cluster:
        cluster.start_all(train, args)
        for role, index in (("worker", 1), ("worker", 0), ("ps", 0)):
            before = max(cluster.step("worker", 0), 1)
            reaches(cluster, before + 15, [0])
            cluster.kill(role, index)
            cluster.start(role, index, train, args)
        outcome = cluster.finish()
        logs = cluster.log("worker", 0) + cluster.log("worker", 1)
    named = [int(end) - int(begin) + 1 for begin, end in re.findall(r"records (\d+) to (\d+) .* may count twice", logs)]
    assert excess(outcome, epochs=1) < sum(named) + 1e-2 and len(named) <= 2


@pytest.mark.nightly
def test_an_asynchronous_run_goes_on_in_the_middle_of_the_data_with_other_workers_and_servers(tmp_path: Path) -> None:
    train, args = train_of(tmp_path, epochs=1, mode="async"), args_of(tmp_path)
    with Cluster(tmp_path / "first", JOB, ps=1, workers=2) as cluster:
        cluster.start_all({**train, "steps": 40}, args)
        assert 40 <= (cluster.finish().step or 0) <= 41
    with Cluster(tmp_path / "second", JOB, ps=2, workers=1) as cluster:
        cluster.start_all(train, args)
        assert abs(excess(cluster.finish(), epochs=1)) < 1e-2


def ledger_of(folder: Path) -> Any:
    """Return how often each example counts in the newest checkpoint; nothing where that is just being written."""
    newest = tf.train.latest_checkpoint(str(folder))
    try:
        return [] if newest is None else ledger.counts(newest, EXAMPLES).round(3).tolist()
    except (tf.errors.OpError, ValueError):  # of TensorFlow 2
        return []


def lag_of(cluster: Cluster) -> Any:
    progress = cluster.progress("worker", 0)
    return progress and progress.metrics


@pytest.mark.parametrize("mode", few(["sync", "async"], ["sync"]))
def test_a_log_that_grows_is_trained_once_whoever_is_killed(mode: str, tmp_path: Path) -> None:
    args = args_of(tmp_path, arriving=True, shuffle=20, pause_ms=5)
    train = train_of(tmp_path, steps=1_000_000, mode=mode)
    later = sorted((tmp_path / "data").iterdir(), key=lambda path: -path.stat().st_size)[1:]
    for path in later:
        path.rename(tmp_path / path.name)

    def arrive(number: int) -> None:
        for path in later[:number]:
            (tmp_path / path.name).rename(path)
        del later[:number]

    with Cluster(tmp_path, JOB, ps=2, workers=WORKERS) as cluster:
        cluster.start_all(train, args)
        reaches(cluster, 10)
        arrive(2)
        kinds = [("worker", 1), ("worker", 0), ("ps", 0)] if mode == "sync" else [("ps", 0)]
        for role, index in kinds:
            before = max(cluster.step("worker", 0), 1)
            reaches(cluster, before + 3)
            cluster.kill(role, index)
            arrive(1)
            cluster.start(role, index, train, args)
        arrive(len(later))
        eventually("each example counts once", lambda: sum(ledger_of(tmp_path / "saved")) >= EXAMPLES, 120)
        assert ledger_of(tmp_path / "saved") == [1.0] * EXAMPLES
        eventually("nothing waits", lambda: lag_of(cluster) == {"waiting_shards": 0.0, "lag_s": 0.0})


def build(settings: Dict[str, Any], job: Job) -> None:
    task = Task("worker", 0, {"ps": ["a:1"], "worker": ["b:1", "c:1"]}, 4)
    train = Train.from_dict({"batch_size": 4, "towers": 1, **settings})
    Builder(job, task, train, {}, device_pool.own_pool(task, train)).build()


def job_of(inputs: Any, evaluate: Any = None) -> Job:
    def model(number: Any) -> Any:
        return tf.get_variable("w", []) * tf.cast(number, tf.float32)

    return Job("job.py", inputs, model, lambda args: tf.train.GradientDescentOptimizer(0.1), evaluate)


@pytest.mark.parametrize(
    ("settings", "change", "reason"),
    [
        ({"sync": "stock"}, None, "a dataset without shards, required by train.sync: stock"),
        ({"backup_workers": 1}, None, "a dataset without shards, required by train.backup_workers"),
        ({"replication": "in-graph"}, None, "a dataset without shards, required by train.replication: in-graph"),
        ({}, lambda made: made.map(lambda batch: {"number": batch["number"]}),
         "the dataset of cluster.shards, unchanged"),
        ({"epochs": 1}, lambda made: tf.data.Dataset.from_tensors({"number": [1, 2, 3, 4]}).repeat(),
         "by which train.epochs counts"),
    ],
)  # fmt: skip
def test_what_could_count_wrong_is_refused_before_training(
    settings: Dict[str, Any], change: Any, reason: str, tmp_path: Path
) -> None:
    args = args_of(tmp_path)

    def inputs(task: Any, _: Any) -> Any:
        if "epochs" in settings:
            return change(None)
        made = ledger.inputs(task, args).map(lambda batch: {name: batch[name] for name in batch if name != "worker"})
        return change(made) if change else made

    with pytest.raises(JobError, match=reason):
        build(settings, job_of(inputs))


def test_a_number_of_passes_over_a_log_that_grows_is_refused(tmp_path: Path) -> None:
    args = args_of(tmp_path, arriving=True)

    def inputs(task: Any, _: Any) -> Any:
        return ledger.inputs(task, args)

    def model(number: Any, worker: Any) -> Any:
        return tf.get_variable("w", []) * tf.cast(number, tf.float32)

    with pytest.raises(JobError, match=r"files that are there already, required by train\.epochs"):
        build({"epochs": 1}, replace(job_of(inputs), model=model))


def test_held_out_examples_are_not_handed_out(tmp_path: Path) -> None:
    args = args_of(tmp_path)

    def own(task: Any, _: Any) -> Any:
        return tf.data.Dataset.from_tensors({"number": [1, 2, 3, 4]}).repeat()

    for change in (lambda made: made, lambda made: made.map(lambda batch: {"number": batch["number"]})):
        evaluate = lambda task, _, change=change: change(ledger.inputs(task, args))  # noqa: E731
        with pytest.raises(JobError, match="evaluate returned a dataset from cluster"):
            build({}, job_of(own, evaluate))
