"""An Estimator's model_fn trains, is measured and is served as by an Estimator; what a step leaves out is refused."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import pytest

from cluster import estimator, shards
from cluster.errors import JobError
from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.serving.saved_model import export
from cluster.task import Task
from tests.support.training.alone import saved, train_alone
from tests.support.training.jobs import estimated
from tests.support.training.jobs.estimated import BATCH, MODES, STEPS, Spec
from tests.support.training.processes import Cluster
from tests.support.training.serving import predicted

HAS_ESTIMATOR = hasattr(tf, "estimator")  # TensorFlow 1.15; without it, the test's own loop is the reference
ARGS: Dict[str, Any] = {"learning_rate": 0.3, "optimizer": "adam"}
TASK = Task("worker", 1, {"ps": ["-"], "worker": ["-"] * 3}, batch_size=4)


def of_the_estimator(folder: Path, steps: int) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """All variables, and the metrics, after so many steps of one process with the whole batches."""
    of = tf.estimator.Estimator(estimated.model_fn, str(folder), params={**estimated.PARAMS, **ARGS})
    of.train(estimated.train_input_fn, steps=steps)
    metrics = of.evaluate(estimated.eval_input_fn)
    return {name: of.get_variable_value(name) for name in of.get_variable_names()}, metrics


def of_a_loop(folder: Path, steps: int) -> Tuple[Dict[str, Any], Dict[str, Any]]:
    """The variables by a plain session."""
    params = {**estimated.PARAMS, **ARGS}
    with tf.Graph().as_default(), tf.Session() as session:
        tf.train.get_or_create_global_step()
        features, labels = tf.data.make_one_shot_iterator(estimated.train_input_fn(params)).get_next()
        spec = estimated.model_fn(features, labels, MODES.TRAIN, params)
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        for _ in range(steps):
            session.run(spec.train_op)
        return {each.op.name: session.run(each) for each in tf.global_variables()}, {}


def test_a_model_fn_trains_on_two_workers_as_in_an_estimator_and_its_predictions_are_served(tmp_path: Path) -> None:
    with Cluster(tmp_path, estimated.__name__, ps=2, workers=2) as cluster:
        cluster.start_all({"steps": STEPS, "batch_size": BATCH // 4, "towers": 2}, {**ARGS, "batch": BATCH // 2})
        outcome = cluster.finish()
    variables, metrics = (of_the_estimator if HAS_ESTIMATOR else of_a_loop)(tmp_path / "estimator", STEPS)
    trained = saved(outcome)
    assert set(trained) >= set(variables) - {"beta1_power", "beta2_power"} and len(variables) >= 10
    for name in {*variables} & {*trained}:
        np.testing.assert_allclose(trained[name], variables[name], rtol=1e-5, atol=1e-6, err_msg=name)
    for name in {*metrics} - {"global_step"}:
        assert outcome.metrics[name] == pytest.approx(metrics[name], rel=1e-5), name
    report = export(Job.from_module(estimated), TASK, ARGS, str(outcome.checkpoint), str(tmp_path / "served"))
    assert set(report["inputs"]) == {"word", "x"}
    features, labels = estimated.examples(2 * BATCH)
    clicks = predicted(tmp_path / "served", "session", {**features, "word": features["word"].astype(np.bytes_)})
    assert np.mean((clicks["click"] > 0.5) == labels) == pytest.approx(outcome.metrics["accuracy"])


if HAS_ESTIMATOR:

    def test_a_canned_estimator_trains_as_by_itself(tmp_path: Path) -> None:
        """Its summaries read a table whole, in a branch; its optimizer is given, since its own has another rate."""
        of = tf.feature_column
        word = of.categorical_column_with_vocabulary_list("word", estimated.WORDS)
        canned = tf.estimator.LinearClassifier(
            [word, of.numeric_column("x", shape=[2])],
            str(tmp_path / "canned"),
            loss_reduction=tf.losses.Reduction.SUM_OVER_BATCH_SIZE,
        )
        functions = estimator.functions(canned.model_fn, lambda: estimated.train_input_fn({}))
        outcome = train_alone(Job(__file__, *functions[:3]), tmp_path, {}, steps=STEPS, batch_size=BATCH)
        canned.train(lambda: estimated.train_input_fn({}), steps=STEPS)
        trained = saved(outcome)
        for name in ("linear/linear_model/word/weights", "linear/linear_model/x/weights"):
            np.testing.assert_allclose(trained[name], canned.get_variable_value(name), atol=1e-6, err_msg=name)


# -- data


def batches(dataset: Any, number: int = 1) -> List[Dict[str, Any]]:
    with tf.Session() as session:
        batch = tf.data.make_one_shot_iterator(dataset).get_next()
        return [session.run(batch) for _ in range(number)]


@pytest.fixture(autouse=True)
def graph() -> Any:
    with tf.Graph().as_default() as own:
        tf.train.get_or_create_global_step()
        yield own


def numbers(*structure: Any) -> Any:
    return tf.data.Dataset.range(24).map(lambda each: tf.nest.map_structure(lambda _: each, structure)).batch(4)


def test_a_worker_takes_each_third_batch_or_what_the_input_fn_gives_it() -> None:
    cases: List[Tuple[Any, Any]] = [
        (lambda: numbers(0), [[4, 5, 6, 7], [16, 17, 18, 19]]),
        (lambda input_context, mode, config: numbers(0).skip(input_context.input_pipeline_id + 1), [[8, 9, 10, 11]]),
    ]
    for input_fn, expected in cases:
        inputs, *_ = estimator.functions(lambda features: None, input_fn)
        found = [batch["features"].tolist() for batch in batches(inputs(TASK, {}), len(expected))]
        assert found == expected


@pytest.mark.parametrize(
    ("structure", "names"),
    [
        ((0,), ["features"]),
        (({"a": 0, "b": 0},), ["a", "b"]),
        ((0, 0), ["features", "labels"]),
        (({"a": 0, "b": 0}, {"click": 0, "buy": 0}), ["a", "b", "labels/buy", "labels/click"]),
    ],
)
def test_features_and_labels_arrive_as_the_dataset_has_them(structure: Any, names: List[str]) -> None:
    seen: List[Any] = []

    def model_fn(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
        seen.append((features, labels, mode, params, config))
        loss = tf.get_variable("w", []) * tf.cast(tf.nest.flatten(features)[0][0], tf.float32)
        return Spec(mode, loss=loss, train_op=tf.train.GradientDescentOptimizer(0.1).minimize(loss))

    inputs, model, optimizer, *_ = estimator.functions(model_fn, lambda: numbers(*structure), params={"a": 1, "b": 2})
    batch = tf.data.make_one_shot_iterator(inputs(TASK, {})).get_next()
    assert sorted(batch) == names
    assert model(**batch, training=True, args={"b": 3}).shape.as_list() == [None]
    (features, labels, mode, params, config) = seen[0]
    tf.nest.assert_same_structure(features, structure[0])
    tf.nest.assert_same_structure(labels, structure[1] if len(structure) > 1 else None)
    assert (mode, params, config) == ("train", {"a": 1, "b": 3}, None)
    assert optimizer({})._learning_rate == 0.1 and optimizer({}) is not optimizer({})


def test_sparse_and_ragged_features_have_as_many_losses_as_examples() -> None:
    def model_fn(features: Any) -> Any:
        return Spec(MODES.EVAL, loss=tf.constant(2.0))

    _, model, *_ = estimator.functions(model_fn, lambda: None)
    sparse = tf.SparseTensor([[0, 0]], [1], [5, 2])
    ragged = tf.RaggedTensor.from_row_lengths([1, 2, 3], [1, 0, 2])
    of = model.__wrapped__  # type: ignore[attr-defined]
    assert of is model_fn
    with tf.Session() as session:
        assert session.run(model(training=False, a=sparse)[0]).tolist() == [2.0] * 5
        assert session.run(model(training=False, a=ragged)[0]).tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("input_fn", "expected"),
    [
        (lambda: (1, 2), "expected a tf.data.Dataset, found (1, 2)"),
        (lambda: numbers(0, 0, 0), "expected a dataset of features, or of pairs of features and labels, found 3 parts"),
        (
            lambda: numbers({"args": 0}),
            "expected features with names that are not labels, args, training, found 'args'",
        ),
        (lambda: shards_of_lines(), "expected another dataset than one of cluster.shards, found one; return it from a"),
    ],
)
def test_data_that_cannot_be_features_and_labels_are_refused_at_the_line_of_the_input_fn(
    input_fn: Callable[..., Any], expected: str
) -> None:
    inputs, *_ = estimator.functions(lambda features: None, input_fn)
    with pytest.raises(JobError) as raised:
        inputs(TASK, {})
    assert str(raised.value).startswith(f"{__file__}:{input_fn.__code__.co_firstlineno}: {expected}")


def shards_of_lines() -> Any:
    return shards.lines(TASK, [__file__], lambda lines: {"line": lines})


# -- what a step carries out


def minimized(**how: Any) -> Callable[..., Any]:
    """A model_fn of two variables; ``how`` has its optimizer, its rate, its train_op and more parts of its spec."""

    def model_fn(features: Any, mode: str) -> Any:
        variables = [tf.get_variable(name, [], use_resource=True) for name in ("v", "w")]
        loss = tf.reduce_mean(features) * variables[0] * variables[1]
        optimizer = how.get("optimizer", tf.train.GradientDescentOptimizer)(how.get("rate", lambda: 0.1)())
        run = how.get("run", lambda loss: optimizer.minimize(loss, tf.train.get_global_step()))
        parts = {"loss": loss, "train_op": run(*[loss, optimizer, variables][: run.__code__.co_argcount])}
        more = how.get("more", dict)()
        kind = Spec if {*more} <= {"training_hooks"} else estimator.EstimatorSpec  # TensorFlow's own refuses others
        return kind(mode, **{**parts, **more})

    return model_fn


def with_update(loss: Any, optimizer: Any) -> Any:
    average = tf.assign_add(tf.get_variable("average", [], trainable=False), loss).op
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, average)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        return tf.group(optimizer.minimize(loss), average)


def with_a_count(loss: Any, optimizer: Any) -> Any:
    parts = [optimizer.minimize(loss, var_list=[each]) for each in tf.trainable_variables()]
    with tf.control_dependencies([tf.group(*parts)]):
        return tf.assign_add(tf.train.get_global_step(), 1)


def with_an_average(loss: Any, optimizer: Any, variables: Any) -> Any:
    average = tf.train.ExponentialMovingAverage(0.9)
    with tf.control_dependencies([optimizer.minimize(loss)]):
        return average.apply(variables)


def by_hand(loss: Any, optimizer: Any) -> Any:
    return optimizer.apply_gradients(optimizer.compute_gradients(loss))


def without_minimize(loss: Any, optimizer: Any) -> Any:
    optimizer.minimize(loss)
    return tf.no_op()


def scaffold() -> Dict[str, Any]:
    return {"scaffold": SimpleNamespace(init_fn=print)}


class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
    """An author's own."""


def trained(model_fn: Callable[..., Any], **given: Any) -> Any:
    inputs, model, *_ = estimator.functions(model_fn, lambda: numbers(0).map(lambda n: tf.cast(n, tf.float32)), **given)
    batch = tf.data.make_one_shot_iterator(inputs(TASK, {})).get_next()
    return model(**batch, training=True)


def test_updates_a_count_of_the_global_step_and_hooks_that_show_something_are_no_matter(graph: Any) -> None:
    hook = tf.train.LoggingTensorHook({}, every_n_iter=1)
    trained(minimized(run=with_update, more=lambda: {"training_hooks": [hook]}))
    with tf.variable_scope("other"):
        trained(minimized(run=with_a_count), optimizer=lambda args: {"v": None, "w": None})
    assert not [op.name for op in graph.get_operations() if "gradients" in op.name]


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"run": without_minimize}, "expected the result of optimizer.minimize in the train_op, found name: "),
        ({"run": lambda: tf.no_op()}, "expected the result of optimizer.minimize in the train_op, found name: "),
        (
            {"run": by_hand},
            "expected optimizer.minimize(loss, …), found a call of compute_gradients; for clipping, set",
        ),
        ({"run": with_a_count}, "expected one optimizer, found 2 calls of minimize; call estimator.functions with "),
        ({"run": with_an_average}, "expected a train_op of minimize and of tf.GraphKeys.UPDATE_OPS, found "),
        ({"run": lambda loss, by: by.minimize(loss * 2)}, "expected minimize of the loss in EstimatorSpec, found "),
        ({"run": lambda loss, by: by.minimize(loss, grad_loss=loss)}, "expected a call of minimize without grad_loss"),
        (
            {"run": lambda loss, by, variables: by.minimize(loss, var_list=variables[:1])},
            "expected minimize of all trainable variables, found a var_list without some of them",
        ),
        ({"rate": lambda: tf.constant(0.1)}, "expected only numbers in GradientDescentOptimizer, found a tensor as "),
        ({"more": lambda: {"training_hooks": [Hook()]}}, "expected an EstimatorSpec without hooks and without a"),
        (
            {"more": scaffold},
            "expected an EstimatorSpec without hooks and without a scaffold, found a scaffold with in",
        ),
        ({"more": lambda: {"loss": None}}, "expected a loss that is one number, in the mode train, found None"),
    ],
)
def test_what_a_step_would_not_carry_out_is_refused_at_its_line(how: Dict[str, Any], expected: str) -> None:
    with pytest.raises(JobError) as raised:
        trained(minimized(**how))
    place, _, text = str(raised.value).partition(": ")
    assert place.startswith(f"{__file__}:") and text.startswith(expected), str(raised.value)


def test_a_model_fn_that_returns_something_else_is_refused() -> None:
    with pytest.raises(JobError, match="expected an EstimatorSpec as the result of model_fn, found None"):
        trained(lambda features: None)


def test_the_place_of_a_function_is_the_authors() -> None:
    model_fn, input_fn = minimized(), estimated.train_input_fn
    job = Job(__file__, *estimator.functions(model_fn, input_fn)[:3]).with_args({})
    assert job.place("model") == f"{__file__}:{model_fn.__code__.co_firstlineno}"
    assert job.place("inputs") == f"{estimated.__file__}:{input_fn.__code__.co_firstlineno}"
