"""Whole runs of real task processes."""

import re
import signal
from pathlib import Path
from typing import Any, Dict, List, Tuple

import numpy as np
import pytest

from cluster.protocol.outcome import Outcome
from cluster.runtime import server
from cluster.runtime.tf_compat import tf
from cluster.runtime.waiting import listens
from cluster.task import Task
from cluster.variables.partition_count import CountNote
from tests.support.training.jobs import table
from tests.support.training.processes import Cluster
from tests.support.waiting import eventually, let_pass

JOB = "tests.support.training.jobs.table"
STEPS, TOWER_BATCH, TOWERS, WORKERS = 20, 4, 2, 2
BATCH = TOWER_BATCH * TOWERS * WORKERS
TRAIN = {"steps": STEPS, "batch_size": TOWER_BATCH, "towers": TOWERS}
ARGS = {"examples": STEPS * BATCH}
ENDLESS = {"examples": 10 * BATCH, "endless": True}


def one_process(optimizer: str, batches: List[Tuple[int, int]]) -> Dict[str, Any]:
    """The variables after a plain program has trained on these slices of the examples, whole batch by whole batch."""
    values = table.examples(STEPS * BATCH)
    with tf.Graph().as_default(), tf.Session() as session:
        batch = {name: tf.placeholder(value.dtype, [BATCH, *value.shape[1:]]) for name, value in values.items()}
        train = table.OPTIMIZERS[optimizer](0.02).minimize(tf.reduce_mean(table.model(**batch)))
        session.run(tf.global_variables_initializer())
        for start, end in batches:
            session.run(train, {batch[name]: value[start:end] for name, value in values.items()})
        return {variable.op.name: session.run(variable) for variable in tf.trainable_variables()}


def whole_batches(steps: int = STEPS) -> List[Tuple[int, int]]:
    return [(step * BATCH, (step + 1) * BATCH) for step in range(steps)]


def saved(outcome: Outcome) -> Dict[str, Any]:
    reader = tf.train.load_checkpoint(outcome.checkpoint)
    return {name: reader.get_tensor(name) for name in ("hidden", "output", "table")}


def assert_same(outcome: Outcome, expected: Dict[str, Any]) -> None:
    found = saved(outcome)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def assert_one_gradient_each(cluster: Cluster, steps: int) -> None:
    each = " ".join([str(steps)] * len(cluster.addresses["worker"]))
    assert f"gradients given by each worker: {each}\n" in cluster.log("worker", 0)


def test_no_step_is_taken_without_a_late_worker_and_training_ends_exactly_at_its_last_step_with_one_processs_variables(
    tmp_path: Path,
) -> None:
    args = {**ARGS, "optimizer": "adam"}
    with Cluster(tmp_path, JOB, ps=2) as cluster:
        for task in (("ps", 0), ("ps", 1), ("worker", 0)):
            cluster.start(*task, TRAIN, args)
        eventually("a worker that waits", lambda: "joined at step 0" in cluster.log("worker", 0))
        let_pass(1)  # the claim itself: a step takes some milliseconds
        assert cluster.step() == -1
        cluster.start("worker", 1, TRAIN, args)
        outcome = cluster.finish()
        assert outcome.step == outcome.checkpoint_step == STEPS
        assert_same(outcome, one_process("adam", whole_batches()))
        assert_one_gradient_each(cluster, STEPS)
        told = [cluster.progress("worker", index) for index in range(WORKERS)]
        assert [progress.dropped_gradients for progress in told if progress] == [0] * WORKERS


def test_a_worker_that_is_not_scheduled_for_a_while_still_gives_its_gradient_to_every_step(tmp_path: Path) -> None:
    args = {**ARGS, "slow_s": 0.05}
    with Cluster(tmp_path, JOB) as cluster:
        cluster.start_all(TRAIN, args)
        eventually("a step", lambda: cluster.step("worker", 1) > 0)
        for _ in range(5):
            cluster.running["worker", 1].send_signal(signal.SIGSTOP)
            let_pass(0.1)  # the claim itself
            cluster.running["worker", 1].send_signal(signal.SIGCONT)
            let_pass(0.02)
        assert_same(cluster.finish(), one_process("sgd", whole_batches()))
        assert_one_gradient_each(cluster, STEPS)


def test_the_aggregated_gradient_is_clipped_not_each_workers(tmp_path: Path) -> None:
    with Cluster(tmp_path, JOB) as cluster:
        cluster.start_all({**TRAIN, "steps": 1, "clip_norm": 0.5}, ARGS)
        outcome = cluster.finish()
    before, after, unclipped = one_process("sgd", []), saved(outcome), one_process("sgd", whole_batches(1))
    moved = np.sqrt(sum(np.sum((after[name] - before[name]) ** 2) for name in before))
    assert moved == pytest.approx(0.5 * 0.02, rel=1e-3)
    assert moved < np.sqrt(sum(np.sum((unclipped[name] - before[name]) ** 2) for name in before))


def test_a_second_run_goes_on_from_the_checkpoint_with_its_optimizers_slots(tmp_path: Path) -> None:
    train = {**TRAIN, "checkpoint": {"dir": str(tmp_path / "kept")}}
    for run, steps in [("first", STEPS // 2), ("second", STEPS)]:
        with Cluster(tmp_path / run, JOB) as cluster:
            cluster.start_all({**train, "steps": steps}, {**ARGS, "optimizer": "adam"})
            outcome = cluster.finish()
            assert outcome.step == steps
            joined = cluster.log("worker", 1)
    assert f"joined at step {STEPS // 2}\n" in joined
    # Each run reads the examples from the beginning.
    assert_same(outcome, one_process("adam", 2 * whole_batches(STEPS // 2)))


def test_a_killed_worker_and_a_killed_chief_join_again_and_no_step_is_lost(tmp_path: Path) -> None:
    train, args = {**TRAIN, "steps": 100}, {**ENDLESS, "slow_s": 0.02}
    with Cluster(tmp_path, JOB) as cluster:
        cluster.start_all(train, args)
        for index in (1, 0):
            reached = eventually("steps", lambda: cluster.step() > 5 and cluster.step()) if index else cluster.step()
            cluster.kill("worker", index)
            cluster.start("worker", index, train, args)
            eventually("steps after it joined again", lambda seen=reached: cluster.step() > seen + 5)  # type: ignore[misc]
        assert cluster.finish().step == 100
        joined = [int(line.split()[-1]) for line in cluster.log("worker", 0).splitlines() if "joined" in line]
        assert joined[0] == 0 and len(joined) == 2 and joined[1] > 5
        assert_one_gradient_each(cluster, 100)


def test_a_worker_builds_anew_when_the_chief_and_the_first_server_are_killed_and_slices_chosen_again(
    tmp_path: Path,
) -> None:
    train: Dict[str, Any] = {"steps": 100, "batch_size": 1, "checkpoint": {"every_s": 0.1}}
    args = {"shapes": [[800, 250]]}  # 800 kB
    with Cluster(tmp_path, "tests.benchmarks.speed.job") as cluster:
        cluster.start_all(train, args)
        eventually("a checkpoint", lambda: (cluster.progress("worker", 0) or Outcome(True)).checkpoint_step)
        chosen = re.findall(r"in (\d+) slices each", cluster.log("worker", 1))
        other = 8 if chosen == ["16"] else 16  # the chief chooses by the speed of this machine
        for role in ("worker", "ps"):
            cluster.kill(role, 0)
        cluster.start("ps", 0, train)
        leave_note(Task("ps", 0, cluster.addresses), other)
        cluster.start("worker", 0, train, args)
        assert cluster.finish().step == 100
        assert chosen and f"in {other} slices each" in cluster.log("worker", 0)
        assert "worker:1: building the graph again, because the chief chose other slices" in cluster.log("worker", 1)


def leave_note(ps: Task, number: int) -> None:
    """Leaves on a ps what a chief would have chosen on another network."""
    eventually("the ps", lambda: listens(ps.cluster["ps"][0]))
    with tf.Graph().as_default():
        note = CountNote()
        target = f"grpc://{ps.cluster['ps'][0]}"
        with tf.Session(target, config=server.session_config(ps)) as session:
            note.leave(session, number)


def test_a_loss_that_is_not_a_number_ends_the_worker_before_it_spoils_the_variables(tmp_path: Path) -> None:
    with Cluster(tmp_path, JOB, workers=1) as cluster:
        cluster.start_all({**TRAIN, "checkpoint": {"every_s": 0}}, {**ARGS, "poison": 5})
        assert cluster.exit_code("worker", 0) == 1
        outcome = cluster.outcome("worker", 0)
        assert outcome is not None and not outcome.retry and outcome.step == 5
        assert "worker:0: the loss is not a finite number in step 5" in str(outcome.cause)
        reader = tf.train.load_checkpoint(str(tmp_path / "checkpoint"))
        assert np.isfinite(reader.get_tensor("hidden")).all() and reader.get_tensor("global_step") == 5


def test_gradients_that_are_not_finite_can_be_ignored_and_are_counted(tmp_path: Path) -> None:
    with Cluster(tmp_path, JOB) as cluster:
        cluster.start_all({**TRAIN, "on_nan": "ignore"}, {**ARGS, "poison": 5, "poison_one": True})
        outcome = cluster.finish()
        assert_same(outcome, one_process("sgd", [batch for batch in whole_batches() if batch[0] != 5 * BATCH]))
        for index in range(WORKERS):
            progress = cluster.progress("worker", index)
            assert progress is not None and progress.ignored_gradients == 1
            assert "ignored 1 gradients that were not finite" in cluster.log("worker", index)


def test_a_checkpoint_folder_that_cannot_be_written_fails_the_run_only_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    folder = str(tmp_path / "file" / "checkpoint")
    with Cluster(tmp_path, JOB, workers=1) as cluster:
        cluster.start_all({**TRAIN, "checkpoint": {"dir": folder, "every_s": 0}}, ENDLESS)
        assert cluster.exit_code("worker", 0) == 1
        outcome = cluster.outcome("worker", 0)
        assert outcome is not None and not outcome.retry and outcome.step == STEPS
        assert f"the final checkpoint, step {STEPS}, cannot be written into {folder}" in str(outcome.cause)
        assert f"checkpoints cannot be written into {folder} on " in cluster.log("worker", 0)


def test_a_chief_of_its_own_role_trains_beside_the_workers(tmp_path: Path) -> None:
    with Cluster(tmp_path, JOB, workers=1, chief=1) as cluster:
        cluster.start_all(TRAIN, ARGS)
        assert_same(cluster.finish(), one_process("sgd", whole_batches()))
