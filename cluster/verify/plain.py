"""The author's functions in plain TensorFlow, as in a script for one machine.

    loss   = tf.reduce_mean(model(**batch))
    grads  = optimizer.compute_gradients(loss)
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        step = optimizer.apply_gradients(grads, global_step)

The graph has no tower, no sharing, no weighing, and no server. This module uses no code that builds the graphs of a
run, except for Keras: Keras 3 builds no graph for sessions by itself.
"""

import functools
import operator
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Set, Tuple

from cluster.job import Job
from cluster.runtime.tf_compat import tf
from cluster.sharing import keras_graphs
from cluster.variables.masters import saved_variables
from cluster.variables.uses import ancestors
from cluster.verify.digests import tensors_of
from cluster.verify.givens import Holes
from cluster.verify.named_values import Values, fitting, joined, part_of
from cluster.verify.own_gradients import GradsAndVars, clipped, feeds, noted, terms_of_loss
from cluster.verify.verified_run import HERE, placeholders, session_on


class Given(NamedTuple):
    """The loss and the gradients of a batch, for given values of the variables, and the batch's number of examples."""

    loss: float
    examples: int
    grads: List[Any]


class Taken(NamedTuple):
    """The loss of a step, and the values of all variables after the step."""

    loss: float
    after: Values


class Plain:
    """A job's training in a separate graph and session; each step begins with given values.

    Args:
      job: the job, with its args bound.
      clip_norm: the run's ``train.clip_norm``.
      structure: a batch, whose tensors are in another graph; the placeholders of a batch have the same types.

    Attributes:
      variables: all variables, including local ones; ``model_names`` has the names of the model's variables.
      fed: the placeholders of a batch, followed by ``given``.
      given: placeholders for random numbers and rows of tables.
      noted: the gradients that TensorFlow computes, each with its variable.
      loss, train: the mean loss, and the step.
      of_updates: the operations that the entries of ``tf.GraphKeys.UPDATE_OPS`` need.
      optimizer: the author's optimizer, or the author's mapping of several optimizers.

    Raises:
      JobError: the author's functions fail.
    """

    def __init__(self, job: Job, args: Mapping[str, Any], clip_norm: Optional[float], structure: Mapping[str, Any]):
        self._job, self._args, self._clip_norm = job, args, clip_norm
        with tf.Graph().as_default() as graph, tf.device(HERE):
            tf.set_random_seed(0)
            self._step = tf.train.get_or_create_global_step()
            self.fed, batch = placeholders(structure)
            holes = Holes()
            with job.blame(), holes.rows():
                self._build(batch)
                self.given = holes.of(graph.get_operations(), self._computed)
                self.fed += self.given
                saved = saved_variables([*tf.global_variables(), *tf.local_variables()])
            self._saved = [each for each in saved if each.variable.shape.is_fully_defined()]
            self.variables = [each.variable for each in self._saved]
            self._reads = [each.variable.read_value() for each in self._saved]
            self._holes = {id(each): tf.placeholder(each.dtype, each.shape) for each in self._saved}
            self._gives = {id(each): tf.assign(each.variable, self._holes[id(each)]).op for each in self._saved}
            start = [tf.global_variables_initializer(), tf.local_variables_initializer(), tf.tables_initializer()]
        self._graph, self._start = graph, start
        self._begun: Any = None
        self._own: Optional[Values] = None

    @property
    def _session(self) -> Any:
        """Return the session, which begins with its first use: some plain graphs are never run."""
        if self._begun is None:
            self._begun = session_on(self._graph)
            self._begun.run(self._start)
        return self._begun

    def _build(self, batch: Mapping[str, Any]) -> None:
        keras_graphs.rename_from(keras_graphs.names())
        with keras_graphs.layers(training=True):
            per_example = _losses(self._job.model(**batch))
        self._examples = tf.size(per_example)
        self.loss = tf.reduce_mean(per_example)
        self.model_names = {each.name for each in saved_variables(tf.global_variables())}
        self.optimizer = self._job.optimizer(self._args)
        self.updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
        with noted() as self.noted:
            pairs = self._compute()
        self.of_updates = ancestors(self.updates)
        computed = tensors_of([grad for grad, _ in pairs if grad is not None])
        self._computed = ancestors([self.loss, *computed])
        _read_before(self.of_updates - self._computed, [self.loss, *computed])
        with tf.control_dependencies([*self.updates, *computed]):
            self.train = self._apply(clipped(pairs, self._clip_norm))
        self.terms = terms_of_loss(self.noted)

    def _compute(self) -> GradsAndVars:
        if not isinstance(self.optimizer, dict):
            return list(self.optimizer.compute_gradients(self.loss))
        return [
            pair
            for each, mine in self._groups(tf.trainable_variables())
            for pair in each.compute_gradients(self.loss, mine)
        ]

    def _apply(self, pairs: GradsAndVars) -> Any:
        if not isinstance(self.optimizer, dict):
            return self.optimizer.apply_gradients(pairs, global_step=self._step)
        grads = {variable.name: grad for grad, variable in pairs}
        groups = self._groups([variable for _, variable in pairs])
        applied = [
            each.apply_gradients([(grads[variable.name], variable) for variable in mine])
            for each, mine in groups
            if any(grads[variable.name] is not None for variable in mine)
        ]
        with tf.control_dependencies(applied):
            return tf.assign_add(self._step, 1).op

    def _groups(self, variables: Sequence[Any]) -> List[Tuple[Any, List[Any]]]:
        """Return each optimizer with its variables, whose names begin with its key; the longest fitting key counts."""
        found: Dict[str, List[Any]] = {}
        for variable in variables:
            fitting_keys = [key for key in self.optimizer if _begins(variable.op.name, key)]
            found.setdefault(max(fitting_keys, key=len), []).append(variable)
        return [(self.optimizer[key], mine) for key, mine in found.items()]

    @property
    def names(self) -> List[str]:
        """Return the names of all variables, including local ones."""
        return list(dict.fromkeys(each.name for each in self._saved))

    @property
    def trained(self) -> List[str]:
        """Return the names of the variables that have a gradient, in the order of the gradients."""
        return [each.name for each in saved_variables([each.variable for each in self.noted])]

    def first(self) -> Values:
        """Return the values of all variables before the first step, or the newer values that ``settle`` kept."""
        if self._own is None:
            self._own = self._read()
        return dict(self._own)

    def give(self, before: Values, batch: Sequence[Any]) -> Given:
        """Compute the loss and the gradients of ``batch`` with the values ``before``, by the variables' names."""
        self._load(before)
        fetched = [self.loss, self._examples, [each.grad for each in self.noted]]
        return Given(*self._session.run(fetched, self._feed(batch)))

    def terms_of(self, before: Values, batch: Sequence[Any]) -> Dict[str, Dict[int, Any]]:
        """Compute the gradients of the sum of each collection's terms, by the index of the variable in ``noted``."""
        self._load(before)
        found: Dict[str, Dict[int, Any]] = self._session.run(self.terms, self._feed(batch))
        return found

    def take(self, before: Values, batch: Sequence[Any], grads: Optional[Sequence[Any]] = None) -> Taken:
        """Train one step from the values ``before``; a variable without a value there begins with that of ``first``.

        Args:
          before: values of variables, by name.
          batch: the arrays of the batch.
          grads: replace the gradients that TensorFlow computes from the batch; None does not replace them.
        """
        self._load(before)
        fed = {} if grads is None else feeds(self.noted, grads)
        loss, _ = self._session.run([self.loss, self.train], {**self._feed(batch), **fed})
        return Taken(float(loss), self._read())

    def settle(self, after: Values) -> None:
        """Keep the values ``after`` a step for the next step, for the variables that the servers do not have."""
        self._own = {**self.first(), **after}

    def _feed(self, batch: Sequence[Any]) -> Dict[Any, Any]:
        return dict(zip(self.fed, batch))

    def _load(self, before: Values) -> None:
        values = {**self.first(), **before}
        given = fitting(self._saved, values)
        feed = {self._holes[id(each)]: part_of(each, values) for each in given}
        self._session.run([self._gives[id(each)] for each in given], feed)

    def _read(self) -> Values:
        return joined(self._saved, self._session.run(self._reads))


def _losses(output: Any) -> Any:
    """Return the loss per example for training: without metrics, and the sum of several losses."""
    loss = output[0] if isinstance(output, tuple) else output
    return functools.reduce(operator.add, loss.values()) if isinstance(loss, dict) else loss


def _begins(name: str, key: str) -> bool:
    return not key or name == key.rstrip("/") or name.startswith(key.rstrip("/") + "/")


def _read_before(only_updates: Set[Any], computed: Sequence[Any]) -> None:
    """Let updates change their variables after a loss and its gradients, where TensorFlow does not fix the order."""
    for op in only_updates:
        if _may_change(op) and op._get_control_flow_context() is None:
            op._add_control_inputs([tensor.op for tensor in computed])


def _may_change(op: Any) -> bool:
    takes = [*op.inputs]
    return bool(takes) and any(each.dtype._is_ref_dtype or each.dtype == tf.resource for each in takes)
