"""Training with a table: the result of one process, and bytes for the rows that are touched."""

import re
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.runtime.tf_compat import tf
from cluster.steps.replica import Replica
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from cluster.variables.masters import plain_name
from tests.support.training.alone import joined
from tests.support.training.jobs import large, words
from tests.support.training.processes import Cluster

JOB = "tests.support.training.jobs.words"
STEPS, TOWER_BATCH, TOWERS, WORKERS = 6, 4, 2, 2
BATCH = TOWER_BATCH * TOWERS * WORKERS
TRAIN = {"steps": STEPS, "batch_size": TOWER_BATCH, "towers": TOWERS}


def one_process(optimizer: str, epochs: int = 1, job: Any = words) -> Dict[str, Any]:
    """The variables after a plain program has gone through all batches so many times."""
    values = words.examples(STEPS * BATCH)
    with tf.Graph().as_default(), tf.Session() as session:
        batch = {name: tf.placeholder(value.dtype, [BATCH, *value.shape[1:]]) for name, value in values.items()}
        train = words.OPTIMIZERS[optimizer]().minimize(tf.reduce_mean(job.model(**batch)))
        session.run(tf.global_variables_initializer())
        for start in epochs * list(range(0, STEPS * BATCH, BATCH)):
            session.run(train, {batch[name]: value[start : start + BATCH] for name, value in values.items()})
        return {variable.op.name: session.run(variable) for variable in tf.trainable_variables()}


def assert_same(checkpoint: Any, expected: Dict[str, Any]) -> None:
    reader = tf.train.load_checkpoint(checkpoint)
    for name, value in expected.items():
        np.testing.assert_allclose(reader.get_tensor(name), value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_a_run_goes_on_with_its_optimizers_slots_from_a_checkpoint_of_other_servers_other_workers_or_another_mode(
    tmp_path: Path,
) -> None:
    kept = {"checkpoint": {"dir": str(tmp_path / "kept")}}
    clusters = [(2, 1, "sync"), (3, 2, "sync"), (1, 1, "async")]
    for number, (servers, workers, mode) in enumerate(clusters):
        train = {**TRAIN, **kept, "steps": (number + 1) * STEPS, "towers": 4 // workers, "mode": mode}
        with Cluster(tmp_path / str(number), JOB, ps=servers, workers=workers) as cluster:
            cluster.start_all(train, {"optimizer": "adam", "steps": STEPS})
            assert cluster.finish().step == train["steps"]
        assert f"joined at step {number * STEPS}\n" in cluster.log("worker", 0)
    # Each run goes through the examples once, in the same whole batches, whoever takes part in them.
    for number in range(len(clusters)):
        checkpoint = str(tmp_path / "kept" / f"model-{(number + 1) * STEPS}")
        assert tf.train.load_checkpoint(checkpoint).get_tensor("table/Adam").shape == (words.ROWS, words.WIDTH)
        assert_same(checkpoint, one_process("adam", epochs=number + 1))


def moved_bytes(runs: List[Any]) -> int:
    """What tasks received from each other, as their servers have recorded it."""
    devices = [device for metadata in runs for device in metadata.step_stats.dev_stats]
    labels = [node.timeline_label for device in devices for node in device.node_stats]
    return sum(int(size) for size in re.findall(r"\[(\d+)B\]", " ".join(labels)))


def about_to_step(train: Dict[str, Any], optimizer: str, job: Any = words) -> Tuple[Replica, Any]:
    """A worker on two ps that has joined, and its session."""
    return joined(Job.from_module(job), Train.from_dict(train), {"steps": STEPS, "optimizer": optimizer})


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_table_is_trained_as_by_one_process_with_the_same_optimizer(optimizer: str) -> None:
    trained = after_all_batches(optimizer, words)
    expected = one_process(optimizer)
    found = np.concatenate([trained["table/part_0"], trained["table/part_1"]])
    np.testing.assert_allclose(found, expected["table"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(trained["weights"], expected["weights"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam"])
def test_a_dense_variable_in_slices_is_trained_as_by_one_process_with_the_same_optimizer(optimizer: str) -> None:
    trained = after_all_batches(optimizer, large)
    expected = one_process(optimizer, job=large)
    slices = sum(re.fullmatch(r"layer/part_\d+", name) is not None for name in trained)
    found = np.concatenate([trained[f"layer/part_{index}"] for index in range(slices)], 1)
    np.testing.assert_allclose(found, expected["layer"], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(trained["output"], expected["output"], rtol=1e-4, atol=1e-5)


def after_all_batches(optimizer: str, job: Any) -> Dict[str, Any]:
    """The variables, by name, after one worker with four towers has gone through all batches."""
    replica, session = about_to_step({"batch_size": TOWER_BATCH, "towers": BATCH // TOWER_BATCH}, optimizer, job)
    for _ in range(STEPS):
        replica.stepper.step(session)
    return {plain_name(variable): session.run(variable) for variable in replica.variables}


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_step_moves_the_rows_that_it_touches_and_not_the_table(mode: str) -> None:
    replica, session = about_to_step({"mode": mode, "batch_size": TOWER_BATCH, "towers": TOWERS}, "sgd")
    steps = [Traced(session) for _ in range(5)]  # a server may answer before it has recorded all
    for traced in steps:
        replica.stepper.step(traced)
    row, most = words.WIDTH * 4 + 8, TOWERS * TOWER_BATCH * words.WORDS
    moved = max(moved_bytes(traced.runs) for traced in steps)
    assert most * row < moved < 2 * most * row + 500 < words.INITIAL.nbytes / 500


def test_with_backup_workers_the_gradients_of_a_table_are_rows_too() -> None:
    task = Task("worker", 0, {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}, batch_size=TOWER_BATCH)
    settings = Train(tower_batch_size=TOWER_BATCH, backup_workers=1)
    replica = Builder(Job.from_module(words), task, settings, {"steps": STEPS}, [PoolMember(task, ["CPU:0"])]).build()
    types = [op.type for op in replica.graph.get_operations()]
    assert types.count("SparseConditionalAccumulator") == 2  # of the table's two slices
    assert types.count("ResourceConditionalAccumulator") == 1


class Traced:
    """A session that records what is moved."""

    def __init__(self, session: Any):
        self._session = session
        self.runs: List[Any] = []

    def run(self, *args: Any) -> Any:
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        self.runs.append(tf.RunMetadata())
        return self._session.run(*args, options=options, run_metadata=self.runs[-1])
