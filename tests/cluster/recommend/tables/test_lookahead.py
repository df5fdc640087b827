"""Batches that wait for their rows meet the rows that were taken for them, and what cannot wait is refused."""

from typing import Any, Callable, Dict, Set

import pytest

from cluster import embedding
from cluster.errors import JobError
from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.recommend.tables.lookahead import Lookahead
from cluster.runtime.tf_compat import tf
from cluster.task import Task, Train
from cluster.training.graph_builder import Builder
from tests.support.training.jobs import clicks

TASK = Task("worker", 0, {"ps": ["a:1"], "worker": ["b:1"]}, batch_size=4)


@pytest.mark.parametrize("steps", [1, 2, 5])
def test_a_batch_leaves_with_what_was_taken_for_it_also_after_a_session_was_given_up(steps: int) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.data.make_initializable_iterator(tf.data.Dataset.range(1000).map(lambda x: {"x": x, "y": -x}))
        arrived = batch.get_next()
        bounded = {name: tf.identity(value) for name, value in arrived.items()}
        ids = bounded["x"] * 10
        lookahead = Lookahead(steps, list(bounded.values()), "/cpu:0")
        (newest,) = lookahead.of_newest([ids])
        rows = lookahead.delay({"rows": newest + 1})
        lookahead.close()
        step = [bounded, ids, rows, lookahead.beside]
        session.run(batch.initializer)
        lookahead.begin(session)
        number = 0
        for given_up in (False, True):
            if given_up:  # it had put some into one queue alone, and left the others
                session.run(lookahead._queues[0].enqueue([tf.constant(5, tf.int64)]))
                number += steps
                lookahead.begin(session)
            for _ in range(7):
                found, own, taken, _ = session.run(step)
                assert (found["x"], found["y"], own, taken["rows"]) == (number, -number, 10 * number, 10 * number + 1)
                number += 1


def test_what_no_step_uses_is_taken_from_its_queue_all_the_same() -> None:
    """A table without a gradient filled the queue of its gradients' keys, and the run stood still."""
    with tf.Graph().as_default(), tf.Session() as session:
        batch = tf.data.make_initializable_iterator(tf.data.Dataset.range(1000))
        arrived = batch.get_next()
        lookahead = Lookahead(1, [tf.identity(arrived)], "/cpu:0")
        lookahead.delay_there({"keys": arrived}, "/cpu:0")
        lookahead.close()
        session.run(batch.initializer)
        lookahead.begin(session)
        for _ in range(5):
            session.run(lookahead.beside, options=tf.RunOptions(timeout_in_ms=20_000))


@pytest.mark.parametrize("others", [0, 2])
def test_ids_of_a_vocabulary_are_known_before_their_step(others: int) -> None:
    def model(user: Any, **batch: Any) -> Any:
        of = tf.feature_column.categorical_column_with_vocabulary_list(
            "user", [1, 2, 3], dtype=tf.int64, num_oov_buckets=others
        )
        column = embedding.column(embedding.table("second", 2), of)
        return clicks.model(user, **batch) + tf.reduce_sum(tf.feature_column.input_layer({"user": user}, [column]), 1)

    build(Job(__file__, clicks.inputs, model, clicks.optimizer), {"table_staleness": 1})


def by_variable(user: Any) -> Any:
    return user + tf.cast(tf.get_variable("offset", []), tf.int64)


def by_chance(user: Any) -> Any:
    return user + tf.random.uniform(tf.shape(user), 0, 2, tf.int64)


def by_rows(user: Any) -> Any:
    return tf.argmax(embedding.lookup(embedding.table("first", 4), user), 1)


@pytest.mark.parametrize("ids_of", [by_variable, by_chance, by_rows])
def test_ids_that_are_not_known_before_their_step_are_refused(ids_of: Callable[[Any], Any]) -> None:
    def model(user: Any, **batch: Any) -> Any:
        return clicks.model(user, **batch) + tf.reduce_sum(
            embedding.lookup(embedding.table("second", 2), ids_of(user)), 1
        )

    with pytest.raises(JobError, match=r"ids for the table 'second' that depend on .*; expected ids that depend only"):
        build(Job(__file__, clicks.inputs, model, clicks.optimizer), {"table_staleness": 1})


def test_a_model_without_tables_is_refused() -> None:
    job = Job(__file__, clicks.inputs, lambda **batch: tf.get_variable("w", []) * batch["y"], clicks.optimizer)
    with pytest.raises(JobError, match=r"expected embedding tables for train.table_staleness, found none"):
        build(job, {"table_staleness": 1})


@pytest.mark.parametrize("steps", [0, 1])
def test_a_server_takes_no_gradient_of_rows_before_the_rows_that_the_same_step_asks_it_for(steps: int) -> None:
    job = Job(__file__, clicks.inputs, clicks.model, clicks.optimizer)
    graph = build(job, {"table_staleness": steps})
    given = [op for op in graph.get_operations() if op.type == "SparseAccumulatorApplyGradient"]
    assert given
    for op in given:
        assert "LookupTableFindV2" in {each.type for each in before_on_its_server(op)}


def before_on_its_server(op: Any) -> Set[Any]:
    """What an operation waits for on its own device alone: nothing that travels to a worker and back."""
    found, left = {op}, [op]
    while left:
        each = left.pop()
        before = {*(tensor.op for tensor in each.inputs), *each.control_inputs}
        left += [one for one in before - found if one.device == op.device]
        found |= before
    return {each for each in found if each.device == op.device}


def build(job: Job, settings: Dict[str, Any]) -> Any:
    train = Train.from_dict({"batch_size": 4, **settings})
    return Builder(job, TASK, train, {"steps": 2}, [PoolMember(TASK, ["CPU:0"])]).build().graph
