"""Send gradients to the servers and new values back, piece by piece.

    worker   the gradient of a load            -> its server
    server   [the update, when it is due; then the new value is laid out]
    worker   the new value of a parcel         <- its server, into the worker's memory

A *load* is one unit that a worker sends in a step. It is the gradients of a parcel in one tensor, or the gradient of a
variable that has no copy. Such a variable is, for example, a table, of which only rows travel.
"""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from cluster.runtime.constants import Constants
from cluster.runtime.declared import declared
from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.variables.buckets import Parcel
from cluster.variables.local_copies import Copies
from cluster.variables.masters import plain_name
from cluster.variables.wire_format import Wire

GradsAndVars = Sequence[Tuple[Any, Any]]
_OUTBOX = "outbox"
Publish = Callable[[], Any]  # makes the operation by which the chief writes the model's own state to the servers


@dataclass(frozen=True)
class Load:
    """One gradient, dense or sparse, for one server, or something else of which a step takes the mean.

    ``unpack`` makes (gradient, variable) pairs of a gradient of this kind, such as a mean of several.
    """

    name: str
    device: str  # of the server
    grad: Any  # on the worker, as it travels
    shape: Any
    variables: List[Any]
    unpack: Callable[[Any], List[Tuple[Any, Any]]]
    parcel: Optional[Parcel] = None


class Came(NamedTuple):
    """The values of a parcel that a worker has received, by name.

    ``arrived`` is a number that is there once the values are.
    """

    arrived: Any
    values: Dict[str, Any]


def plain_load(grad: Any, variable: Any) -> Load:
    """The gradient of one variable by itself."""
    return Load(variable.op.name, variable.device, grad, variable.shape, [variable], lambda taken: [(taken, variable)])


def arrived(load: Load, wire: Wire) -> List[Tuple[Any, Any]]:
    """The (gradient, variable) pairs of a load, on its server."""
    with tf.device(load.device):
        return load.unpack(wire.widen(load.grad) if load.parcel else load.grad)


def is_outbox(op: Any) -> bool:
    """Return whether a variable's operation is an outbox: a parcel ready to travel."""
    return bool(op.get_attr("shared_name").decode().endswith(f"/{_OUTBOX}"))


class Exchange:
    """Send the parcels of ``copies``, in the number format of ``wire``.

    ``publish`` is None where a model changes no variables but those that are trained. ``in_order``: whether gradients
    are added in the order of the workers, which ``launch verify`` needs.
    """

    def __init__(self, copies: Copies, wire: Wire, publish: Optional[Publish] = None, in_order: bool = False):
        self.copies, self.wire, self.publish, self.in_order = copies, wire, publish, in_order
        self.constants = Constants()
        self._outboxes: Dict[str, Any] = {}

    def loads(self, grads_and_vars: GradsAndVars) -> List[Load]:
        """Everything that a worker gives to a step, parcels first; variables without a gradient are left out."""
        grads = {plain_name(variable): grad for grad, variable in grads_and_vars}
        found = [self._load(parcel, grads) for parcel in self.copies.parcels]
        return found + [
            plain_load(grad, variable)
            for grad, variable in grads_and_vars
            if grad is not None and plain_name(variable) not in self.copies.variables
        ]

    def _load(self, parcel: Parcel, grads: Dict[str, Any]) -> Load:
        of_parcel = {name: tf.convert_to_tensor(grads[name]) for name in parcel.names}
        packed = self.wire.narrow_gradient(parcel.name, self.copies.pack(parcel, of_parcel))

        def unpack(taken: Any) -> List[Tuple[Any, Any]]:
            values = self.copies.unpack(parcel, taken)
            return [(values[name], self.copies.variables[name]) for name in parcel.names]

        variables = [self.copies.variables[name] for name in parcel.names]
        return Load(parcel.name, ps_device(parcel.server), packed, packed.shape, variables, unpack, parcel)

    def fetched(self, after: Sequence[Any] = ()) -> Dict[str, Any]:
        """Fetch all parcels from their servers, once ``after`` has happened; return values by name.

        The worker fetches all parcels at once.
        """
        came = [self.came(parcel, self.outgoing(parcel, after)) for parcel in self.copies.parcels]
        return {name: value for each in came for name, value in each.values.items()}

    def forget(self) -> Any:
        """The operation that forgets what the wire kept. Make it after ``loads``."""
        return tf.group(*self.wire.reset)

    def outgoing(self, parcel: Parcel, after: Sequence[Any] = ()) -> Any:
        """Return a parcel's values as they travel to a worker, read once ``after`` has happened.

        The values are on the parcel's server.
        """
        with tf.device(ps_device(parcel.server)):
            with tf.control_dependencies(after):
                values = {name: self.copies.variables[name].read_value() for name in parcel.names}
            # TensorFlow moves a cast to before the reading of its variable: it must wait itself, or is a step behind.
            with tf.control_dependencies(after):
                return self.wire.narrow(self.copies.pack(parcel, values))

    def lay_out(self, parcel: Parcel, after: Any) -> Any:
        """Prepare a parcel's values for all workers; return the operation after which they are ready.

        A variable that travels unchanged needs no preparation. The server writes several variables together, or one in
        another number format, into an *outbox*. An outbox is a variable of the server that holds the values as they
        travel.
        """
        if self._travels_as_it_is(parcel):
            return after
        sent = self.outgoing(parcel, [after])
        with tf.device(ps_device(parcel.server)):
            return tf.assign(self._outbox(parcel), sent).op

    def laid_out(self, parcel: Parcel, after: Sequence[Any]) -> Any:
        """Return the values that ``lay_out`` prepared, on the server, once ``after`` has happened."""
        if self._travels_as_it_is(parcel):
            return self.outgoing(parcel, after)
        with tf.device(ps_device(parcel.server)), tf.control_dependencies(after):
            return tf.identity(self._outbox(parcel))

    def cleared(self) -> List[Any]:
        """Make the operations that give outboxes a value, so that nobody finds one without."""
        of: Dict[str, List[Any]] = {}
        for outbox in self._outboxes.values():
            of.setdefault(outbox.device, []).append(outbox)
        return [op for device, outboxes in of.items() for op in _zeroed(device, outboxes)]

    def _travels_as_it_is(self, parcel: Parcel) -> bool:
        return len(parcel.names) == 1 and self.wire.type == tf.float32

    def _outbox(self, parcel: Parcel) -> Any:
        if parcel.name not in self._outboxes:
            name = f"{parcel.name}/{_OUTBOX}"
            self._outboxes[parcel.name] = declared(name, self.copies.packed_shape(parcel), self.wire.type, name)
        return self._outboxes[parcel.name]

    def came(self, parcel: Parcel, sent: Any) -> "Came":
        """Receive the ``sent`` values of a parcel in the worker's memory."""
        with tf.device(self.copies.host):
            received, arrived = tf.identity_n([self.wire.widen(sent), self.constants.of(1, self.copies.host)])
            return Came(arrived, self.copies.unpack(parcel, received))


def _zeroed(device: str, outboxes: Sequence[Any]) -> List[Any]:
    """Make the operations that fill the outboxes of one server with zeros, one for each.

    A function makes the zeros, on the server: they do not travel, and its operations are no operations of the graph.
    """
    kinds = [(outbox.shape, outbox.dtype.base_dtype) for outbox in outboxes]
    with tf.device(device):
        zeros = tf.wrap_function(lambda: [tf.zeros(*kind) for kind in kinds], [])()
        return [tf.assign(outbox, zero).op for outbox, zero in zip(outboxes, zeros)]
