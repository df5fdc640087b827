"""What a model changes by itself, such as averages: the chief's are written to the servers, others read them there."""

from typing import Any, Iterator, List

import pytest

from cluster.errors import JobError
from cluster.model.state import State
from cluster.runtime.tf_compat import tf
from cluster.variables.layout import Layout
from cluster.variables.masters import Masters
from cluster.variables.profile import profile_variables
from cluster.variables.uses import ancestors
from tests.cluster.steps.test_sync_worker import servers_of


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(params=[False, True], ids=["reference", "resource"])
def average(request: Any) -> Any:
    return kept("average", request.param)


def kept(name: str, use_resource: bool = False) -> Any:
    return tf.get_variable(name, [], initializer=tf.zeros_initializer(), trainable=False, use_resource=use_resource)


def state(variables: List[Any], step: List[Any], trained: Any = ()) -> State:
    return State({each.op.name: each for each in variables}, trained, ancestors(step))


def test_what_a_step_changes_and_what_it_uses_are_told_apart(average: Any) -> None:
    read, idle = kept("read"), kept("idle")
    step = [tf.assign_add(average, 1.0).op, read.read_value() + 1.0]
    found = state([average, read, idle], step)
    assert found.changed == ["average"]
    assert found.used == ["average", "read"]


def test_a_change_that_no_step_runs_is_none(average: Any) -> None:
    tf.assign_add(average, 1.0)
    found = state([average], [tf.constant(0)])
    assert found.changed == found.used == []


def test_a_variable_with_a_gradient_is_none_of_the_state() -> None:
    weight = tf.get_variable("w", [])
    assert state([weight], [weight.read_value()], {"w"}).used == []


def test_to_assign_what_the_optimizer_trains_is_refused_with_the_line() -> None:
    weight = tf.get_variable("w", [])
    with pytest.raises(JobError, match=r"test_state\.py:\d+: the model assigns the variable w, which the optimizer"):
        state([weight], [tf.assign(weight, 1.0).op], {"w"})


def test_to_change_a_variable_in_the_loss_of_another_tower_is_refused_with_the_line(average: Any) -> None:
    with tf.name_scope("tower_0"):
        first = tf.assign_add(average, 1.0).op
    with tf.name_scope("tower_1"):
        second = tf.assign_add(average, 1.0).op
    assert state([average], [first]).changed == ["average"]
    with pytest.raises(JobError, match=r"test_state\.py:\d+: every tower would change the variable average once"):
        state([average], [first, second])


def test_a_counter_from_which_keras_draws_is_each_workers_own() -> None:
    counter = kept("dropout/seed_generator_state")
    found = state([counter], [tf.assign_add(counter, 1.0).op])
    assert found.changed == found.used == []


def test_what_is_published_is_what_the_step_has_made_of_it(average: Any) -> None:
    (target,) = servers_of([("ps", 1), ("worker", 1)])
    with tf.device("/job:worker/task:0"):
        with tf.name_scope("tower_0"):
            moved = tf.assign_add(average, 2.0).op
        masters = Masters(
            Layout(profile_variables([average], {}, True, set()), 1), {"average": 0}, {"average": average}, {}
        )
        published = state([average], [moved]).publish(masters)
    with tf.Session(target, config=tf.ConfigProto(isolate_session_state=True)) as session:
        session.run(average.initializer)
        session.run(masters.first_values())
        for expected in (2.0, 4.0):
            session.run(published)
            assert session.run(masters.all) == [expected]


def test_a_branch_that_is_taken_in_some_steps_only_is_published_after_each(average: Any) -> None:
    (target,) = servers_of([("ps", 1), ("worker", 1)])
    is_taken = tf.placeholder(tf.bool, [])
    with tf.device("/job:worker/task:0"):
        moved = tf.cond(is_taken, lambda: tf.assign_add(average, 2.0), lambda: 0.0).op
        masters = Masters(
            Layout(profile_variables([average], {}, True, set()), 1), {"average": 0}, {"average": average}, {}
        )
        published = state([average], [moved]).publish(masters)
    with tf.Session(target, config=tf.ConfigProto(isolate_session_state=True)) as session:
        session.run(average.initializer)
        session.run(masters.first_values())
        for taken, expected in ((True, 2.0), (False, 2.0), (True, 4.0)):
            session.run(published, {is_taken: taken})
            assert session.run(masters.all) == [expected]
