"""A copy of a model finds in collections what one process would find there, whatever other copies put into them."""

from typing import Any, Callable, Iterator, List

import pytest

from cluster.runtime.tf_compat import tf
from cluster.sharing.variables import Sharing

KEYS = tf.GraphKeys


@pytest.fixture(autouse=True)
def graph() -> Iterator[Any]:
    with tf.Graph().as_default() as graph:
        yield graph


def numbers_found(model: Callable[[Any], Any], name: str) -> List[int]:
    """How many entries of a collection each of three copies finds at the end of its call."""

    def counting(x: Any) -> Any:
        model(x)
        return len(tf.get_collection(name))

    sharing, x = Sharing(), tf.ones([4, 3])
    return [sharing.call(counting, {"x": x}, f"tower_{index}", f"tower {index}", True) for index in range(3)]


def squared(value: Any) -> Any:
    return tf.nn.l2_loss(value)


def by_hand(x: Any) -> None:
    tf.add_to_collection(KEYS.REGULARIZATION_LOSSES, squared(tf.get_variable("w", [3])))


def by_argument(x: Any) -> None:
    tf.get_variable("w", [3], regularizer=squared)


def by_scope(x: Any) -> None:
    with tf.variable_scope("layer", regularizer=squared):
        tf.get_variable("w", [3])


def by_layer(x: Any) -> None:
    tf.layers.dense(x, 2, kernel_regularizer=squared)


def by_activity(x: Any) -> None:
    tf.layers.dense(x, 2, activity_regularizer=squared)


def by_hand_without_the_name_scope(x: Any) -> None:
    with tf.name_scope(None):
        by_hand(x)


OF_LAYERS = [] if hasattr(tf.keras, "ops") else [by_layer, by_activity]  # Keras 3 has no tf.layers


@pytest.mark.parametrize("model", [by_hand, by_hand_without_the_name_scope, by_argument, by_scope, *OF_LAYERS])
def test_each_copy_finds_a_term_of_regularization_once_whoever_added_it(model: Callable[[Any], Any]) -> None:
    assert numbers_found(model, KEYS.REGULARIZATION_LOSSES) == [1, 1, 1]


def test_terms_of_both_kinds_are_found_together() -> None:
    def model(x: Any) -> None:
        by_scope(x)
        by_hand(x)

    assert numbers_found(model, KEYS.REGULARIZATION_LOSSES) == [2, 2, 2]


def test_what_joined_a_collection_before_the_first_copy_is_found_by_all() -> None:
    tf.add_to_collection("mine", "of the inputs")

    def model(x: Any) -> None:
        tf.add_to_collection("mine", "of the model")

    assert numbers_found(model, "mine") == [2, 2, 2]
    assert tf.get_collection("mine") == ["of the inputs", *["of the model"] * 3]


def test_a_variable_that_each_copy_puts_into_a_collection_again_is_there_once_for_each() -> None:
    def model(x: Any) -> None:
        tf.add_to_collection(KEYS.MOVING_AVERAGE_VARIABLES, tf.get_variable("w", [3]))
        tf.get_variable("other", [3], collections=[KEYS.GLOBAL_VARIABLES, KEYS.MOVING_AVERAGE_VARIABLES])

    assert numbers_found(model, KEYS.MOVING_AVERAGE_VARIABLES) == [2, 2, 2]


def test_what_belongs_to_a_copy_is_hidden_from_others_while_it_is_differentiated_too() -> None:
    sharing, x = Sharing(), tf.ones([4, 3])
    found = []
    for index in range(2):
        with sharing.copy():
            sharing.call(by_hand, {"x": x}, f"tower_{index}", f"tower {index}", True)
            found.append(len(tf.get_collection(KEYS.REGULARIZATION_LOSSES)))
    assert found == [1, 1] and len(tf.get_collection(KEYS.REGULARIZATION_LOSSES)) == 2


def test_operations_of_later_copies_are_those_that_they_made_under_whatever_name() -> None:
    def model(x: Any) -> Any:
        with tf.name_scope(None):
            return tf.multiply(x, tf.get_variable("w", [3]), name="product")

    sharing, x = Sharing(), tf.ones([4, 3])
    first, second = (sharing.call(model, {"x": x}, f"tower_{index}", "", True) for index in range(2))
    later = sharing.later_operations()
    assert second.op in later and first.op not in later and x.op not in later


class Network:
    """Layers that are made once, as code with classes has them."""

    def __init__(self) -> None:
        layers = tf.keras.layers
        self.one = layers.Dense(3, kernel_regularizer=squared, activity_regularizer=squared)
        self.two = layers.BatchNormalization()

    def __call__(self, x: Any) -> Any:
        return self.two(self.one(x), training=True)


def test_a_layer_that_was_made_once_has_the_losses_of_the_copy_that_calls_it_and_those_of_its_variables() -> None:
    network, found = Network(), []

    def model(x: Any) -> None:
        network(x)
        found.append(len(network.one.losses))

    numbers_found(model, "none")
    assert found == [2, 2, 2]


def test_the_updates_of_a_layer_that_was_made_once_belong_to_the_copy_that_calls_it() -> None:
    network, sharing, x = Network(), Sharing(), tf.ones([4, 3])
    found = []
    for index in range(2):
        with sharing.copy():
            sharing.call(network, {"x": x}, f"tower_{index}", f"tower {index}", True)
            found.append(tf.get_collection(KEYS.UPDATE_OPS))
    assert [len(each) for each in found] == [2, 2] and not set(found[0]) & set(found[1])


def test_a_variable_that_is_made_outside_of_the_copys_name_scope_is_shared_like_any_other() -> None:
    def model(x: Any) -> Any:
        with tf.name_scope(None):
            one = tf.Variable(tf.ones([3]), name="one")
        with tf.name_scope("absolute/"):
            return x * one * tf.Variable(tf.ones([3]), name="two")

    numbers_found(model, "none")
    assert [each.op.name for each in tf.global_variables()] == ["one", "absolute/two"]
