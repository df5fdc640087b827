"""Whole runs begin with values of another model's checkpoint: once, and again if they are lost before a checkpoint."""

from pathlib import Path
from typing import Any, Dict

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from tests.cluster.checkpoints.test_warm_start import Values, write
from tests.cluster.recommend.tables.test_checkpoints import rows_in
from tests.support.nightly import few
from tests.support.training.jobs import clicks, warm
from tests.support.training.processes import Cluster
from tests.support.waiting import eventually

JOB, SEED = "tests.support.training.jobs.warm", 1


def random_values(seed: int) -> Values:
    random = np.random.RandomState(seed)
    return {name: np.array(random.randn(*shape), np.float32) for name, (shape, _) in warm.variables(SEED).items()}


def saved(path: Any) -> Values:
    reader = tf.train.load_checkpoint(str(path))
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


def one_step(values: Values, batch: int, rate: float) -> Values:
    """One step of plain TensorFlow in one process, from these values."""
    args = {"seed": SEED, "optimizer": "sgd", "rate": rate}
    with tf.Graph().as_default(), tf.Session() as session:
        x, row = tf.constant(np.arange(batch), tf.float32), tf.constant(np.arange(batch))
        with tf.variable_scope(tf.get_variable_scope(), use_resource=False):
            loss = tf.reduce_mean(warm.model(args, x=x, row=row))
        step = warm.optimizer(args).minimize(loss)
        session.run(tf.global_variables_initializer())
        for variable in tf.global_variables():
            info = variable._get_save_slice_info()
            name, begin = (info.full_name, info.var_offset[0]) if info else (variable.op.name, None)
            value = values[name] if begin is None else values[name][begin : begin + variable.shape.as_list()[0]]
            variable.load(value, session)
        updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        session.run(updates)
        session.run(step)
        found: Dict[str, Any] = {}
        for variable in tf.global_variables():
            info = variable._get_save_slice_info()
            found.setdefault(info.full_name if info else variable.op.name, []).append(session.run(variable))
        return {name: np.concatenate(each) if len(each) > 1 else each[0] for name, each in found.items()}


@pytest.mark.parametrize(("sync", "servers"), few([("overlapped", 2), ("plain", 3)], [("overlapped", 2)]))
def test_the_first_step_is_that_of_one_process_with_these_values(sync: str, servers: int, tmp_path: Path) -> None:
    values, args = random_values(servers), {"seed": SEED, "optimizer": "sgd", "rate": 0.05}
    path = write({f"old/{name}": value for name, value in values.items()}, str(tmp_path / "other" / "model"))
    train: Dict[str, Any] = {
        "sync": sync, "steps": 1, "batch_size": 4, "towers": 1, "checkpoint": {"dir": str(tmp_path / "kept")},
        "warm_start": {"checkpoint": path, "rename": {"": "old/"}},
    }  # fmt: skip
    with Cluster(tmp_path / "first", JOB, ps=servers, workers=2) as cluster:
        cluster.start_all(train, args)
        first = cluster.finish()
        names = len(warm.variables(SEED))
        assert f"warm start: {names} variables from {path}\n" in cluster.log("worker", 0)
        assert "warm start" not in cluster.log("worker", 1)
    expected, found = one_step(values, 8, 0.05), saved(first.checkpoint)
    for name in set(expected) - {warm.MOVING}:  # which is of the chief's batch alone
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
    own = values[warm.MOVING] * 0.5
    assert min(abs(found[warm.MOVING] - own - 0.5 * np.mean(range(begin, 8, 2))) for begin in (0, 1)) < 1e-5
    assert found["global_step"] == 1
    for each in (tmp_path / "other").iterdir():  # the run's own checkpoint counts from here on
        each.unlink()
    with Cluster(tmp_path / "again", JOB, ps=1, workers=1) as cluster:
        cluster.start_all({**train, "steps": 2, "batch_size": 8}, args)
        again = cluster.finish()
        assert again.step == 2 and "warm start" not in cluster.log("worker", 0)
    after = one_step({**expected, warm.MOVING: found[warm.MOVING]}, 8, 0.05)
    for name in set(expected) - {warm.MOVING}:
        np.testing.assert_allclose(saved(again.checkpoint)[name], after[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("mode", few(["sync", "async"], ["async"]))
def test_a_server_that_dies_before_the_first_checkpoint_gets_these_values_again(mode: str, tmp_path: Path) -> None:
    values = random_values(7)
    path = write(values, str(tmp_path / "other" / "model"))
    train: Dict[str, Any] = {
        "mode": mode, "steps": 300, "batch_size": 4, "towers": 1, "checkpoint": {"every_s": 10000},
        "warm_start": {"checkpoint": str(tmp_path / "other"), "only": ["[!n]*"]},
    }  # fmt: skip
    with Cluster(tmp_path, JOB, ps=2, workers=2 if mode == "sync" else 1) as cluster:
        cluster.start_all(train, {"seed": SEED, "optimizer": "adam", "rate": 0.0})
        eventually("a step", lambda: cluster.step() > 0)
        cluster.kill("ps", 1)
        cluster.start("ps", 1, train)
        outcome = cluster.finish()
        line = f"warm start: {len(values) - 1} variables from {path}; 1 other variable keeps its initial value\n"
        assert cluster.log("worker", 0).count(line) == 2
    found = saved(outcome.checkpoint)
    for name in set(values) - {warm.MOVING}:
        np.testing.assert_array_equal(found[name], values[name], err_msg=name)


def test_tables_begin_under_other_names_and_on_other_servers(tmp_path: Path) -> None:
    args = {"optimizer": "adagrad", "steps": 4}
    with Cluster(tmp_path / "old", "tests.support.training.jobs.clicks", ps=2, workers=1) as cluster:
        cluster.start_all({"steps": 8, "batch_size": 8, "towers": 1}, args)
        path = str(cluster.finish().checkpoint)
    old = rows_in(path)
    warm_start = {"checkpoint": path, "only": ["members", "text/*", "last/weights"],
                  "rename": {"members": "user", "text/": "", "text/terms": "words", "last/": ""}}  # fmt: skip
    train = {"steps": 2, "batch_size": 4, "towers": 1, "warm_start": warm_start}
    with Cluster(tmp_path / "new", "tests.support.training.jobs.recalled", ps=3, workers=2) as cluster:
        cluster.start_all(train, {"steps": 4})
        outcome = cluster.finish()
        rows = len(old["user"]) + len(old["words"])
        words = f"warm start: 1 variable and {rows:,} rows of 2 tables from {path}; 1 other variable"
        assert words in cluster.log("worker", 0)
    found = rows_in(str(outcome.checkpoint))
    assert found["members"].keys() == old["user"].keys()  # whatever the table admits
    assert found["text/terms"].keys() == old["words"].keys()
    for here, there in (("members", "user"), ("text/terms", "words")):
        assert all(row.tobytes() == old[there][each].tobytes() for each, row in found[here].items())
    weights = saved(outcome.checkpoint)["last/weights"]
    np.testing.assert_array_equal(weights, saved(path)["weights"])
    assert weights.shape == (clicks.WIDTH,) and weights.any()
