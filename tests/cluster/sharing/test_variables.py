"""A model that is built for each tower and for the evaluation has one set of variables, however it makes them."""

from typing import Any, Callable, Iterator, List

import numpy as np
import pytest

from cluster.runtime.tf_compat import tf
from cluster.sharing import keras_graphs
from cluster.sharing.variables import NotShared, Sharing
from cluster.towers import outputs_of, split_batch

Model = Callable[..., Any]
layers = tf.keras.layers
IS_KERAS_2 = not hasattr(tf.keras, "ops")
X = np.random.RandomState(0).randn(4, 6, 3).astype(np.float32)
CPUS = ["/device:CPU:0", "/device:CPU:0"]


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(5)
        yield graph


def variables(x: Any) -> Any:
    with tf.name_scope("first"):
        w = tf.Variable(tf.random_normal([3, 2]), name="w")
    made = tf.Variable([tf.constant(0.0), 1.0]) + tf.Variable(lambda: tf.zeros([2])) + tf.Variable(np.ones(2, "f"))
    return x @ w + made + tf.Variable(w.initialized_value()[0]) + tf.get_variable("w", [2])


def dense(x: Any) -> Any:
    return layers.Dense(3)(layers.Dense(3, activation="tanh")(x))


def sequential(x: Any) -> Any:
    return tf.keras.Sequential([layers.Dense(2), layers.Dense(3)])(x)


def functional(x: Any) -> Any:
    inside = tf.keras.Input([6, 3])
    hidden = layers.Conv1D(4, 3, padding="same")(inside)
    return tf.keras.Model(inside, layers.Dense(3)(layers.BatchNormalization()(hidden)))(x)


class Subclassed(tf.keras.Model):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = layers.Dense(2), layers.Dense(2)

    def call(self, x: Any) -> Any:
        return self.two(self.one(x))


def subclassed(x: Any) -> Any:
    return Subclassed()(x)


def recurrent(x: Any) -> Any:
    return layers.LSTM(4)(layers.GRU(3, return_sequences=True)(x))


def embedded(x: Any) -> Any:
    return layers.Embedding(5, 2)(tf.cast(tf.abs(x), tf.int32))


def averaged(x: Any) -> Any:
    w = tf.get_variable("w", [3])
    average = tf.train.ExponentialMovingAverage(0.9)
    average.apply([w])
    return x * w + average.average(w)


def all_copies(model: Model, sharing: Sharing, towers: int = 2) -> List[Any]:
    """What each tower and the evaluation return; the evaluation has the whole batch."""
    batch = {"x": tf.constant(X)}
    outputs = outputs_of(model, CPUS[:towers], split_batch(batch, towers), sharing)
    return [*outputs, sharing.call(model, batch, "evaluation", "the evaluation", training=False)]


def run(fetches: Any, times: int = 1) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer(), tf.local_variables_initializer()])
        return [session.run(fetches) for _ in range(times)][-1]


def names_of_one_build(model: Model) -> List[str]:
    with tf.Graph().as_default(), keras_graphs.layers(training=None):
        keras_graphs.rename_from({})  # Keras 3 goes on counting from graph to graph
        model(tf.constant(X))
        return [variable.op.name for variable in tf.global_variables()]


MODELS = [variables, dense, sequential, functional, subclassed, recurrent, embedded, averaged]


@pytest.mark.parametrize("model", MODELS)
def test_all_copies_of_a_model_have_the_variables_that_one_would_have_under_the_same_names(model: Model) -> None:
    all_copies(model, Sharing())
    assert [variable.op.name for variable in tf.global_variables()] == names_of_one_build(model)


@pytest.mark.parametrize("model", [variables, dense, sequential, subclassed, recurrent, embedded, averaged])
def test_towers_return_for_their_parts_what_the_evaluation_returns_for_all(model: Model) -> None:
    first, second, whole = run(all_copies(model, Sharing()))
    np.testing.assert_allclose(np.concatenate([first, second]), whole, rtol=1e-5, atol=1e-6)


def test_gradients_of_all_towers_reach_the_one_set_of_variables() -> None:
    first, second, whole = all_copies(dense, Sharing())
    found = tf.gradients(tf.reduce_sum(first) + tf.reduce_sum(second), tf.trainable_variables())
    expected = tf.gradients(tf.reduce_sum(whole), tf.trainable_variables())
    for ours, theirs in zip(*run([found, expected])):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_names_are_the_same_in_each_graph_and_where_the_caller_has_a_scope() -> None:
    found = []
    for _ in range(2):
        with tf.Graph().as_default(), tf.name_scope("mine"):
            all_copies(dense, Sharing())
            found.append([variable.op.name for variable in tf.global_variables()])
    assert found[0] == found[1] and all(name.startswith("mine/dense") for name in found[0])


def test_another_model_in_the_same_graph_has_variables_of_its_own() -> None:
    all_copies(dense, Sharing())
    all_copies(dense, Sharing())
    assert len(tf.global_variables()) == len({variable.op.name for variable in tf.global_variables()}) == 8


def batch_norm(x: Any) -> Any:
    return layers.BatchNormalization(momentum=0.5)(x)


def functional_batch_norm(x: Any) -> Any:
    inside = tf.keras.Input([6, 3])
    return tf.keras.Model(inside, batch_norm(inside))(x)


@pytest.mark.parametrize("model", [batch_norm, functional_batch_norm])
def test_moving_averages_are_updated_in_training_and_used_in_the_evaluation(model: Model) -> None:
    outputs = all_copies(model, Sharing())
    updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope="tower_0/")
    assert len(updates) == 2 and not tf.get_collection(tf.GraphKeys.UPDATE_OPS, scope="evaluation/")
    mean, variance = (tf.global_variables()[index] for index in (2, 3))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(updates)
        first, _, whole = session.run(outputs)
        moved = session.run([mean, variance])
    np.testing.assert_allclose(first.mean(axis=(0, 1)), 0, atol=1e-5)
    part = X[:2].reshape(-1, 3)
    np.testing.assert_allclose(moved[0], part.mean(0) / 2, rtol=1e-4)
    np.testing.assert_allclose(moved[1], (1 + part.var(0)) / 2, rtol=0.06)  # Keras 2 takes the variance of a sample
    np.testing.assert_allclose(whole, (X - moved[0]) / np.sqrt(moved[1] + 1e-3), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("training", [True, None])
def test_a_frozen_layer_has_no_updates(training: Any) -> None:
    layer = layers.BatchNormalization(trainable=False)
    all_copies(lambda x: layer(x, training=training), Sharing())
    assert tf.get_collection(tf.GraphKeys.UPDATE_OPS) == []


def dropout(x: Any) -> Any:
    return layers.Dropout(0.5)(tf.ones_like(x))


def test_dropout_differs_between_steps_and_towers_and_rests_in_the_evaluation() -> None:
    outputs = all_copies(dropout, Sharing())
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        steps = [session.run(outputs) for _ in range(2)]
    masks = [mask for first, second, _ in steps for mask in (first, second)]
    assert len({mask.tobytes() for mask in masks}) == 4
    assert all((whole == 1).all() for _, _, whole in steps)


def test_with_the_same_seed_initial_values_and_masks_are_the_same() -> None:
    found = []
    for _ in range(2):
        with tf.Graph().as_default():
            tf.set_random_seed(5)
            found.append(run([*all_copies(dense, Sharing()), *all_copies(dropout, Sharing())]))
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


def test_a_layer_that_is_told_whether_it_trains_does_as_it_is_told_and_others_go_on() -> None:
    def model(x: Any) -> Any:
        told = layers.Dropout(0.5)(tf.ones_like(x), training=False)
        return tf.stack([told, layers.Dropout(0.5)(told)])

    first, _, _ = run(all_copies(model, Sharing()))
    assert (first[0] == 1).all() and not (first[1] == 1).any()


def test_outside_of_a_model_keras_is_as_it_was() -> None:
    all_copies(dropout, Sharing())
    np.testing.assert_array_equal(run(layers.Dropout(0.5)(tf.ones([9]))), np.ones(9))


def columns(x: Any) -> Any:
    column = tf.feature_column.categorical_column_with_vocabulary_list("word", ["a", "b", "c"])
    words = tf.gather(tf.constant(["a", "b", "c", "d"]), tf.cast(tf.abs(x[:, 0, 0]), tf.int32))
    both = [tf.feature_column.embedding_column(column, 2), tf.feature_column.indicator_column(column)]
    pairs = tf.lookup.KeyValueTensorInitializer(tf.constant(["a"]), tf.constant([7.0]))
    found = tf.lookup.StaticHashTable(pairs, -1.0).lookup(words)
    return tf.feature_column.input_layer({"word": words}, both) + tf.expand_dims(found, 1)


def test_tables_and_feature_columns_work_in_each_copy_once_tables_are_initialized() -> None:
    first, second, whole = run(all_copies(columns, Sharing()))
    np.testing.assert_allclose(np.concatenate([first, second]), whole, rtol=1e-6)
    assert [variable.op.name for variable in tf.global_variables()] == ["input_layer/word_embedding/embedding_weights"]


def embedded_words(words: Any) -> Any:
    column = tf.feature_column.categorical_column_with_vocabulary_list("words", ["a", "b", "c"])
    return tf.feature_column.input_layer({"words": words}, [tf.feature_column.embedding_column(column, 2)])


def test_feature_columns_take_the_parts_of_sparse_and_ragged_batches_that_come_through_tf_data() -> None:
    ragged = tf.ragged.constant([["a", "b"], ["c"], [], ["b", "b", "a"]])
    examples = tf.data.Dataset.from_tensors({"words": ragged.to_sparse(), "ragged": ragged})
    iterator = tf.data.make_initializable_iterator(examples.prefetch(2))
    tf.add_to_collection(tf.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)

    def model(words: Any, ragged: Any) -> Any:
        return tf.concat([embedded_words(words), tf.expand_dims(tf.to_float(ragged.row_lengths()), 1)], 1)

    sharing, batch = Sharing(), iterator.get_next()
    towers = outputs_of(model, CPUS, split_batch(batch, 2), sharing)
    whole = sharing.call(model, batch, "evaluation", "the evaluation", training=False)
    first, second, expected = run([*towers, whole])
    np.testing.assert_allclose(np.concatenate([first, second]), expected, rtol=1e-6)
    assert first[:, 2].tolist() == [2, 1] and not second[0].any()


def test_local_variables_belong_to_the_copy_that_makes_them() -> None:
    def model(x: Any) -> Any:
        return tf.metrics.mean(x)[1]

    first, second, whole = run(all_copies(model, Sharing()))
    assert [first, second, whole] == pytest.approx([X[:2].mean(), X[2:].mean(), X.mean()], rel=1e-4)


def grows(x: Any) -> Any:
    return x * tf.Variable(tf.ones([2 * len(tf.global_variables()) + 1]), name="grows")


def counts(x: Any) -> Any:
    return x * tf.Variable(1.0, name=f"w_{len(tf.global_variables())}")


@pytest.mark.parametrize("model", [grows, counts])
def test_a_copy_that_wants_a_variable_of_another_name_or_shape_is_refused(model: Model) -> None:
    with pytest.raises(NotShared, match="tower 1 made variables of its own") as caught:
        all_copies(model, Sharing())
    assert caught.value.op.type in ("Variable", "VariableV2", "VarHandleOp")


def test_layers_that_only_training_has_do_not_lend_their_variables_to_others_without_a_word() -> None:
    def model(x: Any) -> Any:
        side = layers.Dense(3)(x) if tf.get_default_graph().get_name_scope() == "tower_0" else x
        return side + layers.Dense(3)(x)

    with pytest.raises(NotShared, match=r"asks for dense/kernel where the first tower made dense_1.*/kernel"):
        all_copies(model, Sharing(), towers=1)


def test_a_copy_may_do_without_some_of_the_variables() -> None:
    def model(x: Any) -> Any:
        in_training = tf.get_default_graph().get_name_scope() == "tower_0"
        main = layers.Dense(3, name="main")(x)
        return main + layers.Dense(3, name="side")(x) if in_training else main

    all_copies(model, Sharing(), towers=1)
    assert len(tf.global_variables()) == 4


class Assigning(layers.Layer):  # type: ignore[misc, name-defined]
    """Halves its weight whenever it is called, as ``SpectralNormalization`` changes what it wraps."""

    def build(self, shape: Any) -> None:
        self.w = self.add_weight(name="w", shape=(3,), initializer="ones")

    def call(self, x: Any) -> Any:
        self.w.assign(self.w / 2)
        return x * self.w


def test_a_layer_of_keras_3_that_assigns_to_what_is_trained_is_refused_as_a_graph_has_no_order() -> None:
    if IS_KERAS_2:  # an assignment is an operation that nobody runs, as in plain TensorFlow
        assert (run(all_copies(lambda x: Assigning()(x), Sharing()))[2] == X).all()
    else:
        with pytest.raises(ValueError, match=r"a layer assigns to .*/w, which is trained"):
            all_copies(lambda x: Assigning()(x), Sharing())


def test_a_scope_without_a_name_of_its_own_counts_as_in_one_process() -> None:
    def model(x: Any) -> Any:
        with tf.variable_scope(None, "part"):
            return tf.get_variable("w", [])

    sharing = Sharing()
    assert [sharing.call(model, {"x": X}, f"tower_{index}", "a tower").op.name for index in range(2)] == ["part/w"] * 2
    assert sharing.scopes.first is not None and sharing.scopes.first["part"] == 1
    assert model(X).op.name == "part_1/w"
    sharing.call(model, {"x": X}, "evaluation", "the evaluation")
    assert model(X).op.name == "part_2/w"
