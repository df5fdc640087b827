"""Send gradients to the servers, and new values back to the workers, piece by piece.

    worker   pushes a gradient                 -> its server
    server   [updates its variables, when the update is due; then prepares the new values]
    worker   receives a bucket's new values    <- its server, in the worker's memory

A *push* is a tensor that a worker sends to one server. Most pushes are of a *bucket*: variables, or slices, of one
server. Each other push is of one variable that has no copy on the worker: a table, of which only rows are sent.

A *window* fixes the order of the pushes to each server, and limits how many are under way. Without this limit, all
pushes would share the network and arrive together at the end. Then a worker would have nothing left to send while new
values come back.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from cluster.runtime.devices import ps_device
from cluster.runtime.server_state import declare
from cluster.runtime.tensors import Constants
from cluster.runtime.tf_compat import tf
from cluster.variables.layout import Bucket
from cluster.variables.local_copies import LocalCopies
from cluster.variables.masters import plain_name
from cluster.variables.wire_format import Wire

GradsAndVars = Sequence[Tuple[Any, Any]]
_OUTBOX = "outbox"
Publish = Callable[[], Any]  # makes the operation by which the chief writes the model's own state to the servers


@dataclass(frozen=True)
class Push:
    """One gradient, dense or sparse, that a worker sends to one server; or another tensor that a step averages.

    ``pairs`` makes (gradient, variable) pairs from ``grad``, or from another gradient of the same form, such as the
    mean of all workers' gradients.
    """

    name: str
    device: str  # of the server
    grad: Any  # on the worker, as it travels
    shape: Any
    variables: List[Any]
    pairs: Callable[[Any], List[Tuple[Any, Any]]]
    bucket: Optional[Bucket] = None

    def unpack(self, taken: Any) -> List[Tuple[Any, Any]]:
        """Split ``taken``, a gradient packed like ``grad``, into (gradient, variable) pairs on the server."""
        with tf.device(self.device):
            return self.pairs(taken)


class Received(NamedTuple):
    """The values of a bucket that a worker has received, by name.

    ``arrived`` is a scalar that arrives together with the values.
    """

    arrived: Any
    values: Dict[str, Any]


def plain_push(grad: Any, variable: Any) -> Push:
    """Return the push of ``grad``, the gradient of one variable that is in no bucket."""
    return Push(variable.op.name, variable.device, grad, variable.shape, [variable], lambda taken: [(taken, variable)])


def by_server(pushes: Sequence[Push]) -> Dict[str, List[Push]]:
    """Group the pushes by the device of their server."""
    found: Dict[str, List[Push]] = {}
    for push in pushes:
        found.setdefault(push.device, []).append(push)
    return found


def unpack_arrived(push: Push, wire: Wire) -> List[Tuple[Any, Any]]:
    """Split the gradient of ``push`` into (gradient, variable) pairs on its server, in the variables' number format."""
    with tf.device(push.device):
        return push.unpack(wire.widen(push.grad) if push.bucket else push.grad)


def is_outbox(op: Any) -> bool:
    """Return whether ``op``, the operation of a variable, is an outbox: it holds a bucket's values ready to send."""
    return bool(op.get_attr("shared_name").decode().endswith(f"/{_OUTBOX}"))


class Exchange:
    """The transport of the buckets of ``copies``, in the number format of ``wire``.

    ``publish`` makes the operation with which the chief writes the model's own state to the servers; None if the model
    changes only trained variables. ``in_order``: whether gradients are added in the order of the workers, which
    ``launch verify`` needs.
    """

    def __init__(self, copies: LocalCopies, wire: Wire, publish: Optional[Publish] = None, in_order: bool = False):
        self.copies, self.wire, self.publish, self.in_order = copies, wire, publish, in_order
        self.constants = Constants()
        self._outboxes: Dict[str, Any] = {}

    def pushes(self, grads_and_vars: GradsAndVars) -> List[Push]:
        """Return all pushes of a worker in a step, first those of buckets; a variable without a gradient has none."""
        grads = {plain_name(variable): grad for grad, variable in grads_and_vars}
        found = [self._push(bucket, grads) for bucket in self.copies.buckets]
        return found + [
            plain_push(grad, variable)
            for grad, variable in grads_and_vars
            if grad is not None and plain_name(variable) not in self.copies.variables
        ]

    def _push(self, bucket: Bucket, grads: Dict[str, Any]) -> Push:
        of_bucket = {name: tf.convert_to_tensor(grads[name]) for name in bucket.names}
        packed = self.wire.narrow_gradient(bucket.name, self.copies.pack(bucket, of_bucket))

        def pairs(taken: Any) -> List[Tuple[Any, Any]]:
            values = self.copies.unpack(bucket, taken)
            return [(values[name], self.copies.variables[name]) for name in bucket.names]

        variables = [self.copies.variables[name] for name in bucket.names]
        return Push(
            name=bucket.name,
            device=ps_device(bucket.server),
            grad=packed,
            shape=packed.shape,
            variables=variables,
            pairs=pairs,
            bucket=bucket,
        )

    def fetch(self, after: Sequence[Any] = ()) -> Dict[str, Any]:
        """Fetch all buckets from their servers, once the operations ``after`` have run; return values by name.

        The worker fetches all buckets at the same time.
        """
        came = [self.receive(bucket, self.read_outgoing(bucket, after)) for bucket in self.copies.buckets]
        return {name: value for each in came for name, value in each.values.items()}

    def forget(self) -> Any:
        """Make the operation that clears the wire format's kept rounding errors. Call this method after ``pushes``."""
        return tf.group(*self.wire.reset)

    def read_outgoing(self, bucket: Bucket, after: Sequence[Any] = ()) -> Any:
        """Return a bucket's values in the form sent to workers, read once the operations ``after`` have run.

        The values are on the bucket's server.
        """
        with tf.device(ps_device(bucket.server)):
            with tf.control_dependencies(after):
                values = {name: self.copies.variables[name].read_value() for name in bucket.names}
            # TensorFlow moves a cast to before the reading of its variable: it must wait itself, or is a step behind.
            with tf.control_dependencies(after):
                return self.wire.narrow(self.copies.pack(bucket, values))

    def prepare(self, bucket: Bucket, after: Any) -> Any:
        """Prepare a bucket's values to be sent to all workers, once ``after`` has run; return the last operation.

        A variable that travels unchanged needs no preparation. The server writes several variables together, or one
        variable in another number format, into an *outbox*. An outbox is a variable of the server that holds the values
        in the form that is sent.
        """
        if self._travels_as_it_is(bucket):
            return after
        sent = self.read_outgoing(bucket, [after])
        with tf.device(ps_device(bucket.server)):
            return tf.assign(self._outbox(bucket), sent).op

    def read_prepared(self, bucket: Bucket, after: Sequence[Any]) -> Any:
        """Read, on the server, the values that ``prepare`` has prepared, once the operations ``after`` have run."""
        if self._travels_as_it_is(bucket):
            return self.read_outgoing(bucket, after)
        with tf.device(ps_device(bucket.server)), tf.control_dependencies(after):
            return tf.identity(self._outbox(bucket))

    def clear(self) -> List[Any]:
        """Make the operations that fill all outboxes with zeros, so that no outbox is read before it has a value."""
        of: Dict[str, List[Any]] = {}
        for outbox in self._outboxes.values():
            of.setdefault(outbox.device, []).append(outbox)
        return [op for device, outboxes in of.items() for op in _zero(device, outboxes)]

    def _travels_as_it_is(self, bucket: Bucket) -> bool:
        return len(bucket.names) == 1 and self.wire.type == tf.float32

    def _outbox(self, bucket: Bucket) -> Any:
        if bucket.name not in self._outboxes:
            name = f"{bucket.name}/{_OUTBOX}"
            self._outboxes[bucket.name] = declare(name, self.copies.packed_shape(bucket), self.wire.type, name)
        return self._outboxes[bucket.name]

    def receive(self, bucket: Bucket, sent: Any) -> "Received":
        """Copy ``sent``, the values of ``bucket``, into the worker's memory, and return the copies."""
        with tf.device(self.copies.host):
            received, arrived = tf.identity_n([self.wire.widen(sent), self.constants.scalar(1, self.copies.host)])
            return Received(arrived, self.copies.unpack(bucket, received))


def _zero(device: str, outboxes: Sequence[Any]) -> List[Any]:
    """Make the operations that fill the outboxes of one server with zeros, one for each.

    A function makes the zeros, on the server: they do not travel, and its operations are no operations of the graph.
    """
    kinds = [(outbox.shape, outbox.dtype.base_dtype) for outbox in outboxes]
    with tf.device(device):
        zeros = tf.wrap_function(lambda: [tf.zeros(*kind) for kind in kinds], [])()
        return [tf.assign(outbox, zero).op for outbox, zero in zip(outboxes, zeros)]


WINDOW = 3  # pushes of one server that are under way: one there, one back, and one as a reserve


class SendWindow:
    """The order and the limit of one worker's pushes to each server; ``note_return`` is called in this order.

    Attributes:
      values: all values that have come back to the worker, by name.
      at_once: the feeds of a ``session.run`` that sends pushes without waiting for their turns.
    """

    def __init__(self) -> None:
        self.values: Dict[str, Any] = {}
        self.at_once: Dict[Any, int] = {}
        self._back: Dict[str, List[Any]] = {}  # for each server, in the order of its pushes

    def wait(self, push: Push) -> Push:
        """Return ``push`` with a gradient that waits for the push's turn.

        The gradient waits until the values of the push ``WINDOW`` places before it, to the same server, have come back.
        """
        back = self._back.get(push.device, [])
        if len(back) < WINDOW:
            return push
        return dataclasses.replace(push, grad=tf.identity_n([push.grad, back[-WINDOW]])[0])

    def note_return(self, push: Push, came: Received) -> None:
        """Record ``came``, the new values that the worker receives in return for ``push``."""
        self._back.setdefault(push.device, []).append(came.arrived)
        self.at_once[came.arrived] = 1
        self.values.update(came.values)
