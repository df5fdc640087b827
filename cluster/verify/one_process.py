"""Train like plain TensorFlow in one process, with the batches of all workers.

The process has one set of variables, and one graph.

    gradients of worker 0, 1, 2, …   the worker's part of the mean loss, differentiated by the worker's towers
    their sum                        ((g0 + g1) + g2) + …
    the optimizer                    as the job creates it, on the model's own variables

The graph has no server, no queue and no token.
"""

from functools import reduce
from typing import Any, Dict, List, Mapping, Sequence, Set, Tuple

from cluster.model.model_state import State, settle
from cluster.runtime.gradients import clip, copy_gradient, map_values
from cluster.runtime.tf_compat import tf
from cluster.sharing.graph_collections import showing
from cluster.updates.counted_step import applied
from cluster.updates.incremental_apply import is_elementwise
from cluster.updates.optimizer_gradients import changed_gradients
from cluster.variables.layout import Bucket, Layout
from cluster.variables.local_copies import LocalCopies
from cluster.variables.uses import ancestors
from cluster.verify.digests import DigestReport, gradient_digest, tensors_of
from cluster.verify.givens import Holes, refuse_random
from cluster.verify.named_values import Values
from cluster.verify.verified_run import HERE, VerifiedRun, feeding, placeholders, session_on
from cluster.verify.whole_model import Pieces, WholeModel, added


class OneProcess:
    """The training in one process, in a separate graph and session.

    Args:
      layout, buckets: the servers' slices of variables, and the buckets that are sent.
      structures: for each worker, the structure of a batch from its dataset.

    Attributes:
      given: placeholders of each copy of the model, for random numbers and rows of tables.
      draws: the number of placeholders for random numbers.
      variables: all variables by name: the model's, their pieces, the global step, and the optimizer's.
    """

    def __init__(
        self, run: VerifiedRun, layout: Layout, buckets: Sequence[Bucket], structures: Sequence[Mapping[str, Any]]
    ):
        self._buckets, self._layout, self._clip_norm = buckets, layout, run.train.clip_norm
        with tf.Graph().as_default() as graph, tf.device(HERE):
            self._fed, batches = zip(*map(placeholders, structures))
            self._model = WholeModel(run, batches)
            holes = Holes()
            with holes.rows():
                self._model.build(lambda device: HERE)
            self._pieces = Pieces(layout, self._model.variables)
            known = tf.global_variables()
            self._step = self._make_step()
            slots = [each for each in tf.global_variables() if each not in known]
            self.given = self._given(holes)
            self.draws = sum(map(len, self.given)) - holes.number_of_lookups
            refuse_random(ancestors([self._step]))
            self.variables = {each.op.name: each for each in tf.global_variables()}
            self._reads = {name: each.read_value() for name, each in self.variables.items()}
            self._initialise = [tf.variables_initializer(known), self._model.prepare]
            self._after = [self._pieces.join(), *(each.initializer for each in slots)]
            graph.finalize()
        self._session = session_on(graph)

    def begin(self, values: Mapping[str, Any]) -> None:
        """Set the variables, or their pieces, to ``values``, the first values by name.

        The method resets the optimizer's variables to their initial values.
        """
        self._session.run(self._initialise)
        for name, value in values.items():
            self.variables[name].load(value, self._session)
        for each in self._after:
            self._session.run(each)

    def step(self, reports: Sequence[DigestReport]) -> List[int]:
        """Train one step with the batch of each worker; return the digest of the gradients for each worker."""
        given = [value for report in reports for copy in report.given for value in copy]
        fed = dict(zip([hole for copy in self.given for hole in copy], given))
        _, digests = self._session.run([self._step, self._digests], {**feeding(self._fed, reports), **fed})
        return [int(number) for number in digests]

    def values(self, names: Sequence[str]) -> Values:
        """Return the values of the variables ``names``, by name."""
        found: Values = self._session.run({name: self._reads[name] for name in names})
        return found

    def _make_step(self) -> Any:
        model = self._model
        workers = [self._pieces.split(worker.grads) for worker in model.workers]
        self._digests = [gradient_digest(list(worker.values())) for worker in workers]
        sums = {name: added([of_worker[name] for of_worker in workers]) for name in workers[0]}
        computed = [*model.losses, *tensors_of([each for worker in workers for each in worker.values()])]
        self._settle_state(computed, ancestors([*computed, *model.updates]))
        following = model.step.read_value() + 1  # an optimizer may count the step, or leave it out
        # The optimizer changes nothing before all values are computed, and before the model's updates have read the
        # variables that it changes. The model's updates may change variables that the optimizer reads.
        ready = [following, *tensors_of(list(sums.values())), *self._digests, *model.updates]
        with tf.control_dependencies(ready), showing(model.collections):
            updated = self._update({name: copy_gradient(grad) for name, grad in self._divided(sums).items()})
        with tf.control_dependencies([updated]):
            joined = self._pieces.join()
        with tf.control_dependencies([joined]):
            return tf.assign(model.step, following).op

    def _given(self, holes: Holes) -> List[List[Any]]:
        """Return the placeholders of each copy of the model, for its random numbers and rows of tables."""
        model = self._model
        grads = tensors_of([each for worker in model.workers for each in worker.grads.values()])
        needed = ancestors([*model.losses, *grads])
        return [holes.of(copy, needed) for copy in model.sharing.operations]

    def _settle_state(self, computed: Sequence[Any], step: Set[Any]) -> None:
        """Let the model's own changes of variables follow the computation of all towers, as on the chief."""
        model, later = self._model, self._model.sharing.later_operations()
        state = State(model.own_variables, model.workers[0].grads, step, later)
        self._changed = [model.variables[name] for name in state.changed]
        settle(state, computed, step, later)

    def _divided(self, sums: Mapping[str, Any]) -> Dict[str, Any]:
        """Return gradients of batches that vary in size, divided by the sum of their weights."""
        if self._model.workers[0].weight is None:
            return dict(sums)
        weight = reduce(lambda one, other: one + other, [worker.weight for worker in self._model.workers])
        return {
            name: map_values(grad, lambda values: values / tf.cast(weight, values.dtype)) for name, grad in sums.items()
        }

    def _update(self, sums: Mapping[str, Any]) -> Any:
        model, optimizer = self._model, self._model.optimizer
        if is_elementwise(optimizer, self._changed):
            pairs = [(grad, self._pieces.variables[name]) for name, grad in self._clipped(sums).items()]
            return optimizer.apply_gradients(pairs)
        grads = {name: sums.get(name) for name in model.variables}
        pairs = clip(changed_gradients(optimizer, grads, model.variables), self._clip_norm)
        return applied(optimizer, pairs, model.step)

    def _clipped(self, sums: Mapping[str, Any]) -> Dict[str, Any]:
        """Return the clipped gradients, with the norm of whole buckets: a sum depends on what is summed at once."""
        if self._clip_norm is None:
            return dict(sums)
        copies = LocalCopies(self._buckets, self._layout.shapes, HERE)
        together = [name for bucket in self._buckets for name in bucket.names]
        parts: List[Tuple[Any, Any]] = [(copies.pack(bucket, sums), bucket) for bucket in self._buckets]
        parts += [(grad, name) for name, grad in sums.items() if name not in together]
        found: Dict[str, Any] = {}
        for grad, part in clip(parts, self._clip_norm):
            found.update(copies.unpack(part, grad) if isinstance(part, Bucket) else {part: grad})
        return found
