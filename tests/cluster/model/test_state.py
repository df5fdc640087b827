"""What a model changes by itself, such as averages: the chief's are written to the servers, others read them there."""

from typing import Any, Iterator, List

import pytest

from cluster.errors import JobError
from cluster.model.model_state import State, settle
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


def state(variables: List[Any], step: List[Any], trained: Any = (), later: Any = ()) -> State:
    return State({each.op.name: each for each in variables}, trained, ancestors(step), later)


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
    first, second = (tf.assign_add(average, 1.0).op for _ in range(2))
    assert state([average], [first], later={second}).changed == ["average"]
    with pytest.raises(JobError, match=r"test_state\.py:\d+: every tower would change the variable average once"):
        state([average], [first, second], later={second})


def test_a_change_inside_a_function_is_one_of_the_step_and_of_no_trained_variable() -> None:
    average, weight = kept("average", use_resource=True), tf.get_variable("w", [], use_resource=True)
    move = tf.function(lambda variable: variable.assign_add(1.0), autograph=False)
    steps = [move(average), move(weight)]
    assert state([average], steps).changed == ["average"]
    with pytest.raises(JobError, match=r"test_state\.py:\d+: the model assigns the variable w, which the optimizer"):
        state([weight], steps, {"w"})


def local(name: str) -> Any:
    return tf.get_local_variable(name, [], initializer=tf.zeros_initializer())


def settled(step: List[Any], results: Any = (), later: Any = (), workers: int = 1) -> None:
    settle(state([], step), results, ancestors(step), later, workers)


@pytest.mark.parametrize("use", [lambda variable: variable + 1.0, lambda variable: tf.assign_add(variable, 1.0)])
def test_a_local_variable_that_a_step_changes_is_refused_where_another_tower_uses_it_too(use: Any) -> None:
    memory = local("memory")
    moved, used = tf.assign(memory, memory + 2.0), use(memory)
    settled([moved], later={used.op})
    with pytest.raises(JobError, match=r"test_state\.py:\d+: the step changes the local variable memory, which all"):
        settled([moved, used], later={used.op})


def test_local_variables_that_only_one_tower_uses_or_that_no_step_changes_are_none_of_anybodys_business() -> None:
    counted, constant = local("counted"), local("constant")
    moved, used = tf.assign_add(counted, 1.0), [constant + 1.0, constant + 2.0]
    settled([moved, *used], later={moved.op, used[1].op})


def test_a_local_state_that_only_the_chief_would_change_is_refused_with_several_workers() -> None:
    memory, counted = local("memory"), local("counted")
    loss = memory * 2.0
    with tf.control_dependencies([loss]):
        moved, beside = tf.assign_add(memory, 1.0), tf.assign_add(counted, 1.0)
    with tf.control_dependencies([moved]):
        waiting = tf.identity(loss)
    settled([waiting, beside], [waiting], workers=2)
    with pytest.raises(JobError, match=r"test_state\.py:\d+: only the chief runs tf.GraphKeys.UPDATE_OPS"):
        settled([loss, moved, beside], [loss], workers=2)


def test_a_state_that_each_worker_would_move_by_its_own_examples_and_use_is_refused(average: Any) -> None:
    example = tf.placeholder(tf.float32, [])
    before = average + 0.0
    with tf.control_dependencies([before]):
        by_examples, by_itself = tf.assign(average, example), tf.assign(average, 0.5 * before)
    with tf.control_dependencies([by_examples]):
        loss, other_loss = before * example, example + 0.0
    with pytest.raises(JobError, match=r"test_state\.py:\d+: each worker would change the variable average by its own"):
        state([average], [loss]).refuse_own([example], [loss])
    state([average], [other_loss]).refuse_own([example], [other_loss])  # changed, but used by no loss
    state([average], [before, by_examples]).refuse_own([example], [before])  # beside the loss: the chief's counts
    with tf.control_dependencies([by_itself]):
        loss = before * example
    state([average], [loss]).refuse_own([example], [loss])  # all workers change it alike


def test_a_counter_from_which_keras_draws_is_each_workers_own() -> None:
    counter = kept("dropout/seed_generator_state")
    found = state([counter], [tf.assign_add(counter, 1.0).op])
    assert found.changed == found.used == []


def test_what_is_published_is_what_the_step_has_made_of_it(average: Any) -> None:
    (target,) = servers_of([("ps", 1), ("worker", 1)])
    with tf.device("/job:worker/task:0"):
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
