"""An Estimator's model_fn trains, is measured and is served as by an Estimator; what a step leaves out is refused."""

import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import pytest

from cluster import estimator, shards
from cluster.errors import JobError
from cluster.job import Job
from cluster.model import device_pool
from cluster.model.model_graph import ModelGraph
from cluster.runtime.tf_compat import tf
from cluster.serving.saved_model import export
from cluster.task import Task, Train
from cluster.training.job_warnings import ReadArgs
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
        if mode == MODES.PREDICT:
            return estimator.EstimatorSpec(mode, predictions="seen")
        loss = tf.get_variable("w", []) * tf.cast(tf.nest.flatten(features)[0][0], tf.float32)
        return Spec(mode, loss=loss, train_op=tf.train.GradientDescentOptimizer(0.1).minimize(loss))

    inputs, model, optimizer, _, predict = estimator.functions(
        model_fn, lambda: numbers(*structure), params={"a": 1, "b": 2}
    )
    batch = tf.data.make_one_shot_iterator(inputs(TASK, {})).get_next()
    assert sorted(batch) == names
    assert model(**batch, training=True, args={"b": 3}).shape.as_list() == [None]
    (features, labels, mode, params, config) = seen[0]
    tf.nest.assert_same_structure(features, structure[0])
    tf.nest.assert_same_structure(labels, structure[1] if len(structure) > 1 else None)
    assert (mode, params, config) == ("train", {"a": 1, "b": 3}, None)
    names_labels = estimator.functions(lambda features, mode: None, lambda: numbers(*structure))
    if len(structure) > 1:
        with pytest.raises(JobError, match="expected a parameter labels, since the dataset has labels, found none"):
            names_labels[1](**tf.data.make_one_shot_iterator(names_labels[0](TASK, {})).get_next())
    assert predict(args={}, **{name: batch[name] for name in names if "labels" not in name}) == "seen"
    assert seen[-1][1:3] == (None, "infer")
    tf.nest.assert_same_structure(seen[-1][0], structure[0])
    assert optimizer({})._learning_rate == 0.1 and optimizer({}) is not optimizer({})


@pytest.mark.parametrize("number", [5, 3, 4])
def test_features_of_any_kind_have_as_many_losses_as_examples_and_an_evaluation_one(number: int) -> None:
    features = {
        5: tf.SparseTensor([[0, 0]], [1.0], [5, 2]),
        3: tf.RaggedTensor.from_row_lengths([1.0, 2.0, 3.0], [1, 0, 2]),
        4: {"nested": (tf.ones([4, 2]), tf.ones([4]))},
    }[number]

    def model_fn(features: Any, mode: str) -> Any:
        loss = tf.get_variable("w", [], initializer=tf.constant_initializer(2.0), dtype=tf.float16)
        minimized = tf.train.GradientDescentOptimizer(0.1).minimize(loss + 0)
        return Spec(mode, loss=minimized.graph.get_tensor_by_name("add:0"), train_op=minimized)

    _, model, *_ = estimator.functions(model_fn, lambda: None)
    with tf.Session() as session:
        losses = model(training=True, features=features)
        session.run(tf.global_variables_initializer())
        assert session.run(losses).tolist() == [2.0] * number and losses.dtype == tf.float32
    with tf.Graph().as_default():
        tf.train.get_or_create_global_step()
        assert model(training=False, features=tf.ones([7]))[0].shape.as_list() == [1]


def test_a_partial_keeps_what_it_was_given() -> None:
    def input_fn(params: Any, mode: str, config: Any) -> Any:
        seen.append((params, mode, config))
        return numbers(0)

    seen: List[Any] = []
    for given in (partial(input_fn), partial(input_fn, params=5, mode="mine")):
        estimator.functions(lambda features: None, given, config="c")[0](TASK, {"a": 1})
    assert seen == [({"a": 1}, "train", "c"), (5, "mine", "c")]


def test_params_of_a_kind_of_their_own_stay_so_and_args_that_nobody_reads_are_unread() -> None:
    class Params(Dict[str, Any]):
        """As easydict's."""

    class HParams(SimpleNamespace):
        """As that of tf.contrib.training."""

        def __contains__(self, name: str) -> bool:
            return hasattr(self, name)

        def override_from_dict(self, values: Dict[str, Any]) -> None:
            vars(self).update(values)

    seen: List[Any] = []

    def input_fn(params: Any) -> Any:
        seen.append(params)
        return numbers(0)

    args = ReadArgs({"rate": 0.5, "rats": 1})
    for params in (Params(rate=1), HParams(rate=1)):
        estimator.functions(lambda features: None, input_fn, params=params)[0](TASK, args)
    of_a_kind, hparams = seen
    assert type(of_a_kind) is Params and of_a_kind["rate"] == 0.5
    assert vars(hparams) == {"rate": 0.5}
    args = ReadArgs({"rate": 0.5, "rats": 1})
    estimator.functions(lambda features: None, input_fn, params={"rate": 1, "more": 2})[0](TASK, args)
    assert (seen[-1]["rate"], seen[-1]["more"]) == (0.5, 2) and args.unread() == ["rats"]


@pytest.mark.parametrize(
    ("input_fn", "expected"),
    [
        (lambda: (1, 2), "expected a tf.data.Dataset, found (1, 2); return the dataset"),
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
        loss = how.get("loss", tf.identity)(tf.reduce_mean(features) * variables[0] * variables[1])
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


def with_update_left_out(loss: Any, optimizer: Any) -> Any:
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(tf.get_variable("average", [], trainable=False), loss))
    return optimizer.minimize(loss)


def with_a_late_update(loss: Any, optimizer: Any) -> Any:
    minimized = optimizer.minimize(loss)
    with tf.control_dependencies([minimized]):
        late = tf.assign_add(tf.get_variable("average", [], trainable=False), 1.0).op
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, late)
    return tf.group(minimized, late)


def counted_twice(loss: Any, optimizer: Any) -> Any:
    step = tf.train.get_global_step()
    return tf.group(optimizer.minimize(loss, step), tf.assign_add(step, 1))


def with_a_counter(loss: Any, optimizer: Any) -> Any:
    return optimizer.minimize(loss, tf.get_variable("counter", initializer=0, trainable=False))


def by_assigning_the_step(loss: Any, optimizer: Any) -> Any:
    step = tf.train.get_global_step()
    return tf.group(optimizer.minimize(loss), tf.assign(step, step + 1))


def a_function_of_a_tensor() -> Any:
    def rate() -> Any:
        return found or rate()

    found = tf.constant(0.1)
    return rate


def a_function_of_a_number() -> Any:
    def rate(number: float = 0.1) -> Any:
        return number if number else missing or rate()

    if rate() == 0:
        missing = 1
    return rate


def by_hand(loss: Any, optimizer: Any) -> Any:
    return optimizer.apply_gradients(optimizer.compute_gradients(loss))


def without_minimize(loss: Any, optimizer: Any) -> Any:
    optimizer.minimize(loss)
    return tf.no_op()


def scaffold() -> Dict[str, Any]:
    return {"scaffold": SimpleNamespace(init_fn=print)}


class OfAnAuthor:
    """A module of hooks."""

    class LoggingTensorHook(tf.train.SessionRunHook):  # type: ignore[misc]
        """A hook with the name of TensorFlow's."""


class Hook(tf.train.SessionRunHook):  # type: ignore[misc]
    """An author's own."""


def trained(model_fn: Callable[..., Any], **given: Any) -> Any:
    inputs, model, *_ = estimator.functions(model_fn, lambda: numbers(0).map(lambda n: tf.cast(n, tf.float32)), **given)
    batch = tf.data.make_one_shot_iterator(inputs(TASK, {})).get_next()
    return model(**batch, training=True)


@pytest.mark.parametrize("use_resource", [False, True])
def test_updates_a_count_of_the_global_step_and_hooks_that_show_something_are_no_matter(use_resource: bool) -> None:
    hook = tf.train.LoggingTensorHook({}, every_n_iter=1)
    cases: List[Tuple[Dict[str, Any], Any]] = [
        ({"run": with_update, "more": lambda: {"training_hooks": [hook]}}, None),
        ({"run": with_a_count}, lambda args: {"v": None, "w": None}),
        ({"rate": a_function_of_a_number}, None),
    ]
    if HAS_ESTIMATOR:  # its EstimatorSpec takes the dimension away
        cases.append(({"loss": lambda loss: tf.reshape(loss, [1])}, None))
    for how, given in cases:
        with tf.Graph().as_default() as own, tf.variable_scope("", use_resource=use_resource):
            tf.train.get_or_create_global_step()
            trained(minimized(**how), optimizer=given)
            assert not [op.name for op in own.get_operations() if "gradients" in op.name]


def test_updates_of_layers_run_with_a_step_as_with_the_train_op() -> None:
    def model_fn(features: Any, mode: str) -> Any:
        norm = tf.keras.layers.BatchNormalization()
        loss = tf.reduce_mean(norm(tf.reshape(features, [-1, 1])))
        minimized = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        return Spec(mode, loss=loss, train_op=tf.group(minimized, *(norm.updates if runs else ())))

    functions = estimator.functions(model_fn, lambda: numbers(0).map(lambda n: tf.cast(n, tf.float32)))
    has_updates = not hasattr(tf.keras, "ops")  # a layer of Keras 3 has no list of them
    for runs in [True, False] if has_updates else [False]:
        with tf.Graph().as_default():
            job = Job(__file__, *functions[:3])
            pool = device_pool.own_pool(TASK, Train.from_dict({"batch_size": 4}))
            model = ModelGraph(job, pool[0].task, Train.from_dict({"batch_size": 4}), {}, pool)
            if not runs and has_updates:
                with pytest.raises(JobError, match="and the updates of layers, found one without some"):
                    model.build(lambda device: device)
                continue
            model.build(lambda device: device)
            assert len(model.updates) == 2


@pytest.mark.parametrize("mode", [MODES.EVAL, MODES.PREDICT])
def test_a_scaffold_and_hooks_are_refused_in_each_mode(mode: str) -> None:
    def model_fn(features: Any) -> Any:
        return estimator.EstimatorSpec(mode, loss=tf.constant(1.0), scaffold=SimpleNamespace(saver="an average's"))

    _, model, _, _, predict = estimator.functions(model_fn, lambda: None)
    with pytest.raises(JobError, match="without a scaffold, found a scaffold with saver"):
        model(training=False, features=tf.ones([2])) if mode == MODES.EVAL else predict({})


def test_a_metric_of_several_numbers_is_refused() -> None:
    def model_fn(features: Any, mode: str) -> Any:
        found = tf.metrics.precision_at_thresholds(tf.constant([1, 0]), tf.constant([0.7, 0.4]), [0.3, 0.5])
        return Spec(mode, loss=tf.constant(1.0), eval_metric_ops={"precision": found})

    with pytest.raises(JobError, match="as the metric 'precision', found"):
        estimator.functions(model_fn, lambda: None)[1](training=False, features=tf.ones([2]))


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({"run": without_minimize}, "expected the result of optimizer.minimize in the train_op, found name: "),
        ({"run": lambda: tf.no_op()}, "expected the result of optimizer.minimize in the train_op, found name: "),
        ({"run": with_update_left_out}, "expected a train_op that runs tf.GraphKeys.UPDATE_OPS and the updates of"),
        (
            {"run": with_a_late_update},
            "expected tf.GraphKeys.UPDATE_OPS that run before minimize, found one that waits",
        ),
        ({"run": counted_twice}, "expected a train_op that counts the global step once, found 2 times"),
        ({"run": with_a_counter}, "expected minimize with tf.train.get_global_step(), found one that counts counter"),
        ({"run": by_assigning_the_step}, "expected a train_op of minimize and of tf.GraphKeys.UPDATE_OPS, found "),
        ({"run": lambda loss, by: tf.group(by.minimize(loss), by.minimize(loss))}, "expected one optimizer, found 2"),
        (
            {"run": by_hand},
            "expected optimizer.minimize(loss, …), found a call of compute_gradients; leave out",
        ),
        ({"run": with_a_count}, "expected one optimizer, found 2 calls of minimize; call estimator.functions with "),
        ({"run": with_an_average}, "expected a train_op of minimize and of tf.GraphKeys.UPDATE_OPS, found "),
        ({"run": lambda loss, by: by.minimize(loss * 2)}, "expected minimize of the loss in EstimatorSpec, found "),
        ({"run": lambda loss, by: by.minimize(loss, grad_loss=loss)}, "expected a call of minimize without grad_loss"),
        (
            {"run": lambda loss, by, variables: by.minimize(loss, var_list=variables[:1])},
            "expected minimize of all trainable variables, each once, found another var_list; give variables that stay",
        ),
        ({"rate": lambda: tf.constant(0.1)}, "expected only numbers in GradientDescentOptimizer, found a tensor as "),
        ({"rate": a_function_of_a_tensor}, "expected only numbers in GradientDescentOptimizer, found a tensor as lear"),
        ({"rate": lambda: [threading.RLock()]}, "expected only numbers in GradientDescentOptimizer, found objects of"),
        ({"more": lambda: {"training_hooks": [OfAnAuthor.LoggingTensorHook()]}}, "expected an EstimatorSpec without"),
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
