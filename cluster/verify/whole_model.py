"""The model with the towers of every worker, on one set of variables, as plain TensorFlow builds it in one process.

Its variables are cut as on the servers. TensorFlow computes some functions differently for the last elements of a
tensor than for all elements before. So the updates of a slice differ in their bits from those of the whole variable.
Therefore the one process updates the same slices as the servers.

This module has its own code that cuts, joins and adds dense values, and does not use ``cluster.variables.masters`` and
``cluster.steps.accumulators`` for that: a verification must not use the code that it verifies.
"""

from functools import reduce
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from cluster.model.device_pool import PoolMember
from cluster.model.model_graph import Gradients, ModelGraph, Part
from cluster.runtime.gradients import merge_rows
from cluster.runtime.tf_compat import tf
from cluster.updates.nan_guard import guard
from cluster.variables.layout import Layout
from cluster.variables.tables import split_rows
from cluster.verify.verified_run import VerifiedRun


class OfWorker(NamedTuple):
    """One worker's part of a step: its gradients, by the variables' names, and the weight of its batch.

    The weight is None where it is fixed.
    """

    grads: Dict[str, Any]
    weight: Any


class WholeModel(ModelGraph):
    """The model of a job in the current graph, for the batches of all workers.

    Args:
      batches: the batch of each worker.

    Attributes:
      workers: the part of each worker in a step, in the order of the workers.
    """

    def __init__(self, run: VerifiedRun, batches: Sequence[Dict[str, Any]]):
        pool = [PoolMember(task, list(run.devices)) for task in run.tasks]
        super().__init__(run.fresh_job(), run.tasks[0], run.train, run.args, pool)
        self._given = list(batches)
        self.workers: List[OfWorker] = []

    def _inputs(self, estimate: bool) -> Any:
        return self._given, tf.no_op()

    def _differentiate(self, parts: Sequence[Part]) -> Gradients:
        """Return the chief's gradients; the gradients of all workers are in ``workers``."""
        each = len(parts) // len(self.pool)
        found = []
        for index, member in enumerate(self.pool):
            found.append(self._sum_of(member.task, parts[index * each : (index + 1) * each], len(member.devices)))
            self.workers.append(self._of_worker(found[-1], self.losses[-each:]))
        return found[0]

    def _of_worker(self, found: Gradients, losses: Sequence[Any]) -> OfWorker:
        loss = tf.reduce_mean(tf.stack([tf.reduce_mean(each) for each in losses]))
        grads = {variable.op.name: grad for grad, variable in found.pairs if grad is not None}
        _, pairs = guard(loss, grads, self.train.on_nan, found.scales)
        return OfWorker({name: grad for grad, name in pairs}, self.parts.weight)

    def _evaluation(self, setter: Any) -> None:
        """Build no evaluation: a step needs none."""


class Pieces:
    """The pieces of a model's variables, in the current graph; a variable that is not cut is its own piece.

    Args:
      variables: the model's variables, by name.

    Attributes:
      variables: the pieces, by name.
    """

    def __init__(self, layout: Layout, variables: Mapping[str, Any]):
        self._layout, self._whole = layout, variables
        self.variables: Dict[str, Any] = {}
        for name, variable in variables.items():
            if name not in layout.cuts:
                self.variables[name] = variable
                continue
            for piece in layout.pieces(name):
                self.variables[piece.name] = tf.get_variable(
                    piece.name,
                    piece.shape,
                    variable.dtype.base_dtype,
                    tf.zeros_initializer(),
                    trainable=False,
                    use_resource=False,
                )

    def split(self, grads: Mapping[str, Any]) -> Dict[str, Any]:
        """Split ``grads``, by the name of the variable, into the gradients of its pieces, by the name of the piece."""
        return {piece: grad for name, whole in grads.items() for piece, grad in self._split(name, whole).items()}

    def _split(self, name: str, grad: Any) -> Dict[str, Any]:
        names = [piece.name for piece in self._layout.pieces(name)]
        if isinstance(grad, tf.IndexedSlices):
            return dict(zip(names, split_rows(merge_rows(grad), [self.variables[each] for each in names])))
        cut = self._layout.cuts.get(name)
        if cut is None:
            return {name: grad}
        return dict(zip(names, tf.split(grad, list(cut.lengths(self._layout.profiles[name].shape)), cut.axis)))

    def join(self) -> Any:
        """Return the operation that gives cut variables the values of their pieces."""
        return tf.group(*[tf.assign(self._whole[name], self._join(name)).op for name in self._layout.cuts])

    def _join(self, name: str) -> Any:
        values = [self.variables[piece.name].read_value() for piece in self._layout.pieces(name)]
        return tf.concat(values, self._layout.cuts[name].axis)


def added(grads: Sequence[Any]) -> Any:
    """Return ((g0 + g1) + g2) + … of dense gradients, or of sparse ones row by row in the same order."""
    # Like Separate.take, and separate from it on purpose: a verification would not find a mistake that both share.
    if not isinstance(grads[0], tf.IndexedSlices):
        return reduce(lambda one, other: one + other, grads)
    values = tf.concat([grad.values for grad in grads], 0)
    indices = tf.concat([grad.indices for grad in grads], 0)
    return merge_rows(tf.IndexedSlices(values, indices, grads[0].dense_shape))
