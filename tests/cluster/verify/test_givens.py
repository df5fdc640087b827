"""A verified model may draw random numbers and look up rows of tables: the chief's graphs have those of the run."""

from pathlib import Path
from types import ModuleType
from typing import Any, Dict

import pytest

from cluster import embedding, shards
from cluster.model.shares import Parts
from cluster.optimizers import GroupFtrl
from cluster.recommend.tables import held_rows
from cluster.runtime.tf_compat import tf
from tests.cluster.verify.runs import cause, compared, ended
from tests.support.nightly import few
from tests.support.training.jobs import verified


@pytest.fixture(autouse=True)
def small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each server reserves what its host could hold, and here all servers of several runs are one process."""
    monkeypatch.setattr(held_rows, "_capacity", lambda row_bytes: tf.constant(1 << 12))


def job(**functions: Any) -> ModuleType:
    module = ModuleType("verified")
    vars(module).update({**vars(verified), **functions})
    return module


def with_table(x: Any, ids: Any, y: Any, args: Dict[str, Any]) -> Any:
    """Three lookups in two tables, of which one gives what a dense layer takes, without some of it."""
    item, shop = embedding.table("item", 3), embedding.table("shop", 3)
    first, last = embedding.lookup(item, ids[:, 0]), embedding.lookup(item, ids[:, 1:], combiner="mean")
    seen = tf.nn.dropout(tf.concat([x, first, last, embedding.lookup(shop, ids[:, 2])], 1), rate=0.3)
    w = tf.get_variable("w", [int(seen.shape[1]), 4], initializer=tf.glorot_uniform_initializer())
    hidden = tf.nn.relu(seen @ w) + tf.random_normal([4], stddev=0.1)
    return tf.square(tf.reduce_sum(hidden, 1) - y)


def in_a_loop(x: Any, ids: Any, y: Any, args: Dict[str, Any]) -> Any:
    noise = tf.while_loop(lambda turn, _: turn < 2, lambda turn, _: (turn + 1, tf.random_uniform([])), [0, 0.0])[1]
    return verified.model(x, ids, y, args) * (1 + noise)


@pytest.mark.parametrize("settings", [{"towers": 1}, {"towers": 2, "accumulate": 2, "batch_size": 2}], ids=str)
def test_a_model_that_draws_random_numbers_is_compared_in_all_that_it_trains(
    settings: Dict[str, Any], tmp_path: Path
) -> None:
    found = compared(ended(tmp_path, {"draws": True, "optimizer": "adam"}, **settings))
    assert found["verified_steps"] == found["verified_plain_steps"] == 8
    assert found["given_random_numbers"] == 2 * settings["towers"] * settings.get("accumulate", 1)
    assert found["verified_plain_steps_by_parts"] == 0


@pytest.mark.parametrize("workers", few([1, 2], [2]))
def test_a_model_with_tables_is_compared_in_all_but_their_rows(workers: int, tmp_path: Path) -> None:
    found = compared(ended(tmp_path, {}, workers=workers, job=job(model=with_table), steps=4))
    assert found["verified_plain_steps"] == 4 and found["verified_variables"] == 1
    assert found["not_compared_table/item"] == found["not_compared_table/shop"] == 1


def test_an_optimizer_of_one_table_need_have_no_other_variable(tmp_path: Path) -> None:
    parts = {"item": GroupFtrl(0.1, 0.01), "": tf.train.GradientDescentOptimizer(0.1)}
    found = compared(ended(tmp_path, {}, job=job(model=with_table, optimizer=lambda args: parts), steps=4))
    assert found["verified_steps"] == found["verified_plain_steps"] == 4


def test_a_mistake_is_found_in_such_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = Parts.weigh

    def doubled(self: Parts, loss: Any, counts: Any = None) -> Any:
        mean, weight = weighed(self, loss, counts)
        return 2 * mean, weight

    monkeypatch.setattr(Parts, "weigh", doubled)
    text = cause(ended(tmp_path, {}, job=job(model=with_table)))
    assert text.startswith("step 1: servers' w differs from plain TensorFlow in ")
    assert text.endswith("it looks like gradients that are counted 2 times")


def test_random_numbers_in_a_loop_are_refused_with_their_line(tmp_path: Path) -> None:
    text = cause(ended(tmp_path, {}, job=job(model=in_a_loop)))
    assert "test_givens.py:" in text and "outside of loops, branches and functions, found others (Random" in text


def test_clipping_with_tables_is_refused_as_the_norm_has_their_rows(tmp_path: Path) -> None:
    text = cause(ended(tmp_path, {}, job=job(model=with_table), clip_norm=1.0))
    assert "no embedding tables with launch verify and train.clip_norm" in text


@pytest.mark.parametrize("workers", few([1, 2], [2]))
def test_batches_of_shards_are_those_that_the_workers_have_had(workers: int, tmp_path: Path) -> None:
    def inputs(task: Any, args: Dict[str, Any]) -> Any:
        return shards.lines(task, [str(tmp_path / "examples")], parsed, shuffle=8, shard_bytes=2000)

    def parsed(lines: Any) -> Dict[str, Any]:
        x = tf.reshape(tf.strings.to_number(tf.strings.split(lines).values), [8, 7])
        return {"x": x, "ids": tf.cast(x[:, :3] * 10 + 25, tf.int64), "y": tf.sin(tf.reduce_sum(x, 1))}

    rows = verified.examples()["x"][:130].clip(-2, 2)
    (tmp_path / "examples").write_text("".join(" ".join(f"{each:.3f}" for each in row) + "\n" for row in rows))
    made = job(inputs=inputs)
    found = compared(ended(tmp_path, {"optimizer": "adam"}, workers=workers, job=made, epochs=1, steps=1000))
    assert found["verified_steps"] == found["verified_plain_steps"] + found["not_compared_steps_of_shards"] >= 4
    assert found["verified_plain_steps"] >= 2


def test_candidates_that_a_loss_samples_are_those_of_the_run(tmp_path: Path) -> None:
    def model(x: Any, ids: Any, y: Any, args: Dict[str, Any]) -> Any:
        rows = tf.get_variable("rows", [verified.ROWS, 4])
        weights, biases = tf.get_variable("weights", [verified.ROWS, 4]), tf.get_variable("biases", [verified.ROWS])
        return tf.nn.nce_loss(weights, biases, ids[:, :1], tf.nn.embedding_lookup(rows, ids[:, 1]), 6, verified.ROWS)

    found = compared(ended(tmp_path, {}, job=job(model=model), towers=2))
    assert found["verified_plain_steps"] == 8 and found["given_random_numbers"] > 0


def with_own_state(x: Any, ids: Any, y: Any, args: Dict[str, Any]) -> Any:
    """What a worker keeps of its last batch, as the state of a recurrent layer."""
    kept = tf.get_local_variable("kept", [8, 1], initializer=tf.zeros_initializer())
    out = x @ tf.get_variable("weights", [verified.FEATURES, 1]) + 0.5 * kept
    with tf.control_dependencies([kept.assign(tf.stop_gradient(out)).op]):
        return tf.identity(tf.square(out[:, 0] - y))


def test_a_state_of_each_worker_own_is_compared_with_one_worker(tmp_path: Path) -> None:
    assert compared(ended(tmp_path, {}, workers=1, job=job(model=with_own_state)))["verified_plain_steps"] == 8


def test_a_state_that_several_workers_each_have_is_refused_as_one_process_has_it_once(tmp_path: Path) -> None:
    text = cause(ended(tmp_path, {}, job=job(model=with_own_state)))
    assert "the local variable kept, which all copies of the model share" in text, text
    assert text.endswith("use one worker for launch verify"), text
