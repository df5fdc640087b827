"""What changes a variable beside the optimizer, and how it is registered."""

import contextlib
from typing import Any, Iterator

import tensorflow.compat.v1 as tf

from tests.differential.constructions.axes import BY_HAND, STATES, Construction
from tests.differential.constructions.functions import called, when_differentiated
from tests.differential.constructions.nets import Net, scope_of

OWN_UPDATES = "changed_by_the_author"  # a collection
_DECAY = 0.5


class Update:
    """The change of one model call: ``before`` the loss is computed, what it reads; then ``registered`` with it."""

    def __init__(self, how: Construction, net: Net):
        self._how, self._net = how, net
        self._variable: Any = None
        self._read: Any = None
        self._next: Any = None

    def before(self, hidden: Any) -> Any:
        """The first layer's output, to which a recurrent state is added; makes the variable."""
        if self._how.update not in BY_HAND:
            return hidden
        with tf.variable_scope("inner") if self._how.scope == "variable" else contextlib.nullcontext():
            self._variable = self._made(hidden)
        if self._how.target in STATES:
            self._read = self._variable + 0.0
            hidden = tf.tanh(hidden + 0.5 * self._read)
            self._next = tf.stop_gradient(hidden)
        elif self._how.read:
            self._read = self._variable + 0.5
        return hidden

    def registered(self, loss: Any) -> Any:
        """The loss per example, which may read what changes, or wait for its change."""
        how = self._how
        if how.read:
            loss = loss * (0.5 + 0.1 * self._read)
        if how.update == "none" or how.update == "batch_norm":
            return loss
        if how.inside == "custom_gradient":
            return when_differentiated(loss, self._change_backwards)
        with scope_of(how.scope, self._net):
            changed = self._averaged() if how.update in ("average", "average_waited") else self._changed()
        return self._ordered(changed, loss)

    def _made(self, hidden: Any) -> Any:
        how = self._how
        if how.target == "trained":
            return next(each for each in tf.trainable_variables() if each.op.name == "a/w")
        if how.target not in STATES:
            return tf.get_variable(
                "n", [], initializer=tf.ones_initializer(), trainable=False, use_resource=how.resource
            )
        make = tf.get_local_variable if how.target == "local_state" else tf.get_variable
        shape = [int(size) for size in hidden.shape]
        kind = {} if how.target == "local_state" else {"trainable": False}
        return make("carried", shape, initializer=tf.zeros_initializer(), use_resource=how.resource, **kind)

    def _averaged(self) -> Any:
        return tf.train.ExponentialMovingAverage(_DECAY).apply(tf.trainable_variables())

    def _changed(self) -> Any:
        """The operation or tensor that changes the variable."""
        with self._after_reading():
            if self._how.inside == "plain":
                return self._assigned(True)
            return called(self._how.inside, self._body)

    def _body(self) -> Any:
        done = self._assigned(False)
        with tf.control_dependencies([done]):
            return tf.identity(tf.constant(0.0))

    def _assigned(self, read_value: bool) -> Any:
        if self._next is not None:
            return self._variable.assign(self._next, read_value=read_value)
        if self._how.target == "trained":
            return self._variable.assign_sub(0.1 * tf.ones([6, 6]), read_value=read_value)
        if self._read is not None:
            return self._variable.assign_add(1.0 - _DECAY * self._read, read_value=read_value)  # twice is not once
        return self._variable.assign_add(1.0, read_value=read_value)

    @contextlib.contextmanager
    def _after_reading(self) -> Iterator[None]:
        with tf.control_dependencies([] if self._read is None else [self._read]):
            yield

    def _change_backwards(self, above: Any) -> Any:
        with scope_of(self._how.scope, self._net), self._after_reading():
            changed = self._assigned(True)
        return self._ordered(changed, above)

    def _ordered(self, changed: Any, value: Any) -> Any:
        """The value, after the change has joined its collection or while it waits for it."""
        if self._how.update in ("waited", "average_waited"):
            with tf.control_dependencies([changed]):
                return tf.identity(value)
        own = self._how.update == "own_collection"
        tf.add_to_collection(OWN_UPDATES if own else tf.GraphKeys.UPDATE_OPS, changed)
        return value
