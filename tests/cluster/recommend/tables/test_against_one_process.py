"""Tables on several servers, by several towers and workers, are trained as ordinary variables in one plain process."""

from typing import Any, Dict, List

import numpy as np
import pytest

from cluster import embedding
from cluster.errors import JobError
from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from tests.cluster.recommend.tables import plain
from tests.support.nightly import few
from tests.support.training.alone import joined
from tests.support.training.jobs import clicks

pytestmark = pytest.mark.usefixtures("several_servers_in_one_process")
STEPS, BATCH = 5, 8
SETTINGS: Dict[str, Dict[str, Any]] = {
    "adagrad": {"accumulate": 2}, "adam": {"sync": "plain"}, "rmsprop": {"mode": "async"},
}  # fmt: skip
ALWAYS = ("adadelta", "adagrad", "adagrad_decay", "adam", "ftrl", "rmsprop")
TASK = Task("worker", 0, {"ps": ["a:1", "b:1"], "worker": ["c:1", "d:1"]}, batch_size=4)


@pytest.mark.parametrize(
    ("optimizer", "settings"),
    few(
        [(name, SETTINGS.get(name, {})) for name in sorted(clicks.OPTIMIZERS)],
        [(name, SETTINGS.get(name, {})) for name in ALWAYS],
    ),
    ids=str,
)
def test_rows_are_those_of_ordinary_variables(optimizer: str, settings: Dict[str, Any]) -> None:
    parts = settings.get("accumulate", 1)
    train = Train.from_dict({"batch_size": BATCH // 2 // parts, "towers": 2, **settings})
    replica, session = joined(Job.from_module(clicks), train, {"steps": STEPS, "optimizer": optimizer})
    for _ in range(STEPS):
        replica.stepper.step(session)
    found = plain.rows(replica, session)
    expected = plain.train(optimizer, STEPS, BATCH, clicks.examples(STEPS * BATCH))
    for name in plain.TABLES:
        assert set(found[name]) == set(expected[name])
        for each, row in found[name].items():
            np.testing.assert_allclose(row, expected[name][each], rtol=2e-5, atol=2e-6, err_msg=f"{name} {each}")


UNIFORM = ("uniform", -1.0, 1.0, 0)
CHAINED = {"first": 0.5, "then": 2.0}  # tables, and the scale of their rows in the loss


def chained_batches(task: Any, args: Any) -> Any:
    return tf.data.Dataset.from_tensors({"ids": tf.range(task.batch_size, dtype=tf.int64) % 5}).repeat()


def chained(ids: Any) -> Any:
    """Each row decides about the ids of the next lookup: in the same table, and then in another one."""
    first, then = (embedding.table(name, 2, initializer=tf.random_uniform_initializer(-1, 1)) for name in CHAINED)
    one = embedding.lookup(first, ids)
    two = embedding.lookup(first, ids + 3 * tf.cast(one[:, 0] > 0, tf.int64))
    three = embedding.lookup(then, ids * 2 + tf.cast(two[:, 1] > 0, tf.int64))
    return tf.reduce_sum(one * two * CHAINED["first"] + two * three * CHAINED["then"], 1)


def train_chained(steps: int) -> Dict[str, Dict[int, np.ndarray]]:
    """The rows of the same model, by hand, with a learning rate of 0.3."""
    found: Dict[str, Dict[int, np.ndarray]] = {name: {} for name in CHAINED}

    def row(name: str, of: int) -> np.ndarray:
        return found[name].setdefault(of, np.array(plain.first_row_of(name, 2, UNIFORM, of)))

    for _ in range(steps):
        grads: List[Any] = []
        for each in (place % 5 for place in range(BATCH)):
            one = row("first", each)
            of_two = each + 3 * int(one[0] > 0)
            two = row("first", of_two)
            of_three = each * 2 + int(two[1] > 0)
            three = row("then", of_three)
            of_its = one * CHAINED["first"] + three * CHAINED["then"]
            grads += [("first", each, two * CHAINED["first"]), ("first", of_two, of_its)]
            grads += [("then", of_three, two * CHAINED["then"])]
        for name, of, grad in grads:
            found[name][of] = found[name][of] - 0.3 / BATCH * grad
    return found


@pytest.mark.parametrize("towers", few([1, 2], [2]))
def test_lookups_whose_ids_depend_on_rows_of_others_train_as_by_hand(towers: int) -> None:
    job = Job(__file__, chained_batches, chained, lambda args: tf.train.GradientDescentOptimizer(0.3))
    replica, session = joined(job, Train.from_dict({"batch_size": BATCH // towers, "towers": towers}), {})
    for _ in range(STEPS):
        replica.stepper.step(session)
    found, expected = plain.rows(replica, session), train_chained(STEPS)
    for name in CHAINED:
        assert set(found[name]) == set(expected[name])
        for each, row in found[name].items():
            np.testing.assert_allclose(row, expected[name][each], rtol=2e-5, atol=2e-6, err_msg=f"{name} {each}")


@pytest.mark.filterwarnings("ignore:Converting sparse IndexedSlices")
def test_a_table_that_is_read_whole_and_a_variable_with_the_name_of_its_rows_are_refused() -> None:
    def model(**batch: Any) -> Any:
        return clicks.model(**batch) + tf.get_variable(f"embeddings_{clicks.WIDTH}/bias", [])

    def with_a_norm(**batch: Any) -> Any:
        loss = clicks.model(**batch)
        return loss + sum(tf.nn.l2_loss(each) for each in tf.trainable_variables())

    refused = {model: "a name that is not reserved", with_a_norm: "embedding.lookup for every use of a table"}
    for function, words in refused.items():
        job = Job(__file__, clicks.inputs, function, clicks.optimizer)
        with pytest.raises(JobError, match=words):
            Builder(job, TASK, Train(tower_batch_size=4), {"steps": STEPS}, [PoolMember(TASK, ["CPU:0"])]).build()


@pytest.mark.parametrize("sync", ["overlapped", "stock"])
def test_delta_checkpoints_of_a_model_without_tables_are_refused(sync: str) -> None:
    job = Job(__file__, clicks.inputs, lambda **batch: tf.get_variable("w", []) * batch["y"], clicks.optimizer)
    train = Train.from_dict({"batch_size": 4, "sync": sync, "checkpoint": {"delta_every_s": 5}})
    with pytest.raises(JobError, match=r"expected embedding tables for .*delta_every_s, found none"):
        Builder(job, TASK, train, {"steps": STEPS}, [PoolMember(TASK, ["CPU:0"])]).build()


@pytest.mark.parametrize("wire", few(["bfloat16", "float16"], ["bfloat16"]))
def test_rows_and_their_gradients_travel_in_16_bits_and_the_servers_keep_32(wire: str) -> None:
    train = Train.from_dict({"batch_size": BATCH // 2, "towers": 2, "wire": wire})
    replica, session = joined(Job.from_module(clicks), train, {"steps": STEPS, "optimizer": "adagrad"})
    for _ in range(STEPS):
        replica.stepper.step(session)
    assert wide_values_on_the_network(replica.graph) == []
    found = plain.rows(replica, session)
    expected = plain.train("adagrad", STEPS, BATCH, clicks.examples(STEPS * BATCH))
    values = np.concatenate([row for name in plain.TABLES for row in found[name].values()])
    same = np.concatenate([expected[name][each] for name in plain.TABLES for each in found[name]])
    np.testing.assert_allclose(values, same, rtol=0.02, atol=0.02)  # 5 steps of numbers rounded to a 256th
    assert np.any(values.view(np.uint32) & 0xFFFF)  # bfloat16 would have none of these bits


def wide_values_on_the_network(graph: Any) -> List[str]:
    """Names of float32 tensors of several rows that go from one task to another."""

    def task_of(op: Any) -> Any:
        device = tf.DeviceSpec.from_string(op.device)
        return device.job, device.task

    edges = [(tensor, op) for op in graph.get_operations() for tensor in op.inputs]
    crossing = [tensor for tensor, op in edges if op.device and tensor.device and task_of(tensor.op) != task_of(op)]
    assert any(tensor.dtype.size == 2 for tensor in crossing)
    return [each.name for each in crossing if each.dtype == tf.float32 and each.shape.ndims == 2]
