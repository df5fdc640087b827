"""The graph that plain TensorFlow would build for a job on one worker's devices.

The graph has data, towers, gradients and evaluation, and nothing that refers to servers. Its variables are ordinary
variables in the worker's memory.
"""

from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from cluster.errors import JobError
from cluster.job import Job
from cluster.metrics import Metric, metrics_of
from cluster.model.device_pool import PoolMember
from cluster.model.evaluation import Evaluation
from cluster.model.job_results import COUNTS, make_optimizer, next_batch, refuse_borrowed, with_known_size
from cluster.model.mirrors import NotedInitializers, read_before_loops
from cluster.model.shares import Parts
from cluster.runtime.devices import stage_devices, worker_device
from cluster.runtime.tf_compat import tf
from cluster.scoring.metric_columns import Columns
from cluster.sharing.graph_collections import own_entries
from cluster.sharing.variables import Sharing
from cluster.stages import tower_on
from cluster.task import Task, Train
from cluster.towers import Devices, GradsAndVars, add_gradients, split_batch, stages_of
from cluster.updates.optimizer_gradients import changed_gradients, own_gradients


def set_seed(task: Task, args: Mapping[str, Any]) -> None:
    """Set the graph's seed so that random numbers differ between workers.

    Without a ``seed`` in ``args`` the function sets none, so random numbers also differ between runs.
    """
    seed = args.get("seed")
    if seed is not None:
        tf.set_random_seed((int(seed) + 0x9E3779B1 * task.worker_index) % (1 << 31))


Setter = Callable[[str], Any]  # makes of a device what places a tower's operations


class Part(NamedTuple):
    """One part of a batch: its tensors, and the devices of the tower that computes with these tensors.

    ``counts``: float32 [batch], 1 for each example that counts, 0 for the others; None if all count.
    """

    devices: Devices
    batch: Dict[str, Any]
    counts: Any = None


class Gradients(NamedTuple):
    """The gradients of this worker's part of a step's mean loss.

    ``pairs``: (gradient or None, variable) for every trainable variable; ``scales``: whether the optimizer multiplied
    the loss before TensorFlow differentiated it.
    """

    pairs: GradsAndVars
    scales: bool


class ModelGraph:
    """A job's model in the current graph.

    Attributes:
      step: the variable of the global step that the model sees.
      sharing: the copies of the model in the graph.
      collections: the entries of each collection, by its name, that are visible to the first copy once it is built.
      updates: the operations that the first copy requests in addition to each step (``tf.GraphKeys.UPDATE_OPS``).
      loss: a scalar, the mean loss of this worker's towers.
      losses: for each part of the batch, the loss per example.
      measured: the columns of the metrics that training measures; None if it measures none.
      parts: the ``Parts`` that weighed each of ``losses`` by its part of a step's mean loss.
      variables: all global variables except the step's, by name.
      batches: a batch of each member of the pool, as the member's dataset returns it.
      boundary: the tensors of all batches between dataset and model if batches must wait there; else empty.
      place: the position of the batch in its shard, int64 [5]; None for a dataset that is not from ``cluster.shards``.
      start_input: the operation that starts the datasets; run it once lookup tables have their values.
      prepare: the operation that gives lookup tables and local variables their values.
    """

    def __init__(self, job: Job, task: Task, train: Train, args: Mapping[str, Any], pool: Sequence[PoolMember]):
        self.job, self.task, self.train, self.args, self.pool = job, task, train, args, pool
        self.noted = NotedInitializers()
        self.sharing = Sharing()
        self.place: Any = None
        self.boundary: List[Any] = []

    def build(self, setter: Setter, estimate: bool = False) -> None:
        """Add data, towers, gradients and evaluation to the current graph.

        Args:
          setter: a function from the name of a device to the device, or device function, for a tower's operations.
          estimate: whether to replace batches by placeholders with a known number of examples.

        Raises:
          JobError: the job's code fails, or returns values of a wrong kind.
        """
        self.step = tf.train.get_or_create_global_step()
        batches, self.start_input = self._inputs(estimate)
        self.batches = batches
        self.optimizer: Any = None
        self.losses: List[Any] = []
        self._metrics: List[Dict[str, Metric]] = []
        self._results: List[List[Any]] = []  # of each copy: its loss and gradients
        with self.noted.scope():
            self.gradients = self._differentiate(self._parts(batches, setter))
        self._refuse_borrowed()
        self.loss = self._mean_loss()
        # A batch of shards may have copies of examples, which do not count.
        any_measured = any(self._metrics) and not self.train.verify and self.place is None
        self.measured = Columns(self.job, self._metrics) if any_measured else None
        self._refuse_without_variables(any(grad is not None for grad, _ in self.gradients.pairs))
        self.variables = {each.op.name: each for each in tf.global_variables() if each is not self.step}
        with self.noted.scope():
            self.evaluation = self._evaluation(setter)
        self._drop_later_summaries()
        self.prepare = tf.group(tf.local_variables_initializer(), tf.tables_initializer())

    def _drop_later_summaries(self) -> None:
        """Keep the summaries of the first copy: a training step runs no evaluation, and shows one tower."""
        later, summaries = self.sharing.later_operations(), tf.get_collection_ref(tf.GraphKeys.SUMMARIES)
        summaries[:] = [each for each in summaries if each.op not in later]

    def _refuse_borrowed(self) -> None:
        """Refuse a copy of the model whose loss depends on what another copy computes."""
        varying = {each.op for each in (*tf.global_variables(), *tf.local_variables(), *self.examples)}
        refuse_borrowed(self.sharing, self._results, varying)

    def _mean_loss(self) -> Any:
        if self.place is None:
            return tf.reduce_mean(tf.stack([tf.reduce_mean(loss) for loss in self.losses]))
        sums = [tf.reduce_sum(loss * tf.cast(each, loss.dtype)) for loss, each in zip(self.losses, self._counts)]
        number = tf.maximum(tf.add_n([tf.reduce_sum(each) for each in self._counts]), 1)
        return tf.add_n(sums) / tf.cast(number, sums[0].dtype)

    def _inputs(self, estimate: bool) -> Tuple[List[Dict[str, Any]], Any]:
        """Return a batch of each member of the pool, read in its own memory, and what makes the datasets begin."""
        batches, starts = [], []
        for member in self.pool:
            with tf.device(worker_device(member.task.role, member.task.index)):
                batch, self.place, start = next_batch(self.job, member.task, self.args)
                batches.append(self._bounded(with_known_size(batch, self.task.batch_size) if estimate else batch))
            starts.append(start)
        return batches, tf.group(*starts)

    def _bounded(self, batch: Mapping[str, Any]) -> Dict[str, Any]:
        """Return the same batch; where batches are to wait, as tensors of which each can get another input."""
        if not self.train.table_staleness:
            return dict(batch)
        bounded = tf.nest.map_structure(tf.identity, dict(batch), expand_composites=True)
        self.boundary += tf.nest.flatten(bounded, expand_composites=True)
        return bounded  # type: ignore[no-any-return]

    def _parts(self, batches: Sequence[Dict[str, Any]], setter: Setter) -> List[Part]:
        parts = []
        for batch, member in zip(batches, self.pool):
            towers = [self._devices(setter, member.task, first) for first in member.devices]
            with self.job.blame():
                split = [dict(each) for each in split_batch(batch, self.train.accumulate * len(towers))]
            counts = [each.pop(COUNTS, None) for each in split]
            parts += [Part(towers[index % len(towers)], *each) for index, each in enumerate(zip(split, counts))]
        return parts

    def _devices(self, setter: Setter, task: Task, first: str) -> List[Any]:
        """Return the placement of each stage of one tower of ``task``."""
        devices = stage_devices(first, self.train.stages)
        return [setter(worker_device(task.role, task.index, device)) for device in devices]

    def _differentiate(self, parts: Sequence[Part]) -> Gradients:
        """Return the sum of the gradients of all parts."""
        return self._sum_of(self.task, parts, sum(len(member.devices) for member in self.pool))

    def _sum_of(self, task: Task, parts: Sequence[Part], towers: int) -> Gradients:
        """Return the sum of the gradients of parts of one worker's batch.

        A tower begins with its next part when it has the gradients of the one before.
        """
        self.parts = Parts(task, self.train, len(parts))
        self._counts = [part.counts for part in parts]
        found: List[Tuple[GradsAndVars, bool]] = []
        for index, part in enumerate(parts):
            before = found[index - towers][0] if index >= towers else []
            with self.sharing.copy():
                loss = self._loss(len(self.losses), part._replace(batch=_after(before, part.batch)))
                self.losses.append(loss)
                found.append(self._gradients(loss, part))
                self._results.append([loss, *(grad for grad, _ in found[-1][0])])
                if len(self.losses) == 1:  # more than one copy's would change a variable several times a step
                    self.collections = own_entries()
                    self.updates = self.collections.get(tf.GraphKeys.UPDATE_OPS, [])
        pairs = add_gradients([pairs for pairs, _ in found])
        if self.train.sync == "stock":  # each worker does to its gradients what the optimizer does to them
            return Gradients(self._changed(pairs), scales=False)
        return Gradients(pairs, any(scales for _, scales in found))

    def _loss(self, index: int, part: Part) -> Any:
        """Return the loss per example of one part."""
        with self.job.blame(), tower_on(stages_of(part.devices)):
            output = self.sharing.call(self.job.model, part.batch, f"tower_{index}", f"tower {index}", training=True)
            read_before_loops(tf.trainable_variables())
        loss, metrics = self.job.losses(output)
        self._metrics.append(metrics_of(metrics))
        with tf.device(stages_of(part.devices)[0]):
            return tf.identity(loss)

    def _gradients(self, loss: Any, of: Part) -> Tuple[GradsAndVars, bool]:
        """Compute the gradients of one part of the step's mean loss, on its tower's device."""
        with tf.device(stages_of(of.devices)[0]):
            self._refuse_without_variables(bool(tf.trainable_variables()))
            if self.optimizer is None:
                self.model_variables = {each.op.name for each in tf.global_variables()}
                self.optimizer = make_optimizer(self.job, self.args)
            with self.job.blame():
                mean, weight = self.parts.weigh(loss, of.counts)
                found = own_gradients(self.optimizer, mean, tf.trainable_variables(), weight, self.examples)
        return found.pairs, found.scales

    def _refuse_without_variables(self, ok: bool) -> None:
        self.job.check("model", "one that depends on a trainable variable", "a loss without variables", ok)

    def _changed(self, pairs: GradsAndVars) -> GradsAndVars:
        """Return what the optimizer makes of a worker's gradients before it applies them."""
        grads = {variable.op.name: grad for grad, variable in pairs}
        with self.job.blame():
            changed = changed_gradients(self.optimizer, grads, {variable.op.name: variable for _, variable in pairs})
        found = {variable.name: grad for grad, variable in changed}
        return [(found.get(each.name), each) for _, each in pairs]

    @property
    def owned(self) -> List[str]:
        """Return the names of the variables that the optimizer created."""
        return [name for name in self.variables if name not in self.model_variables]

    @property
    def own_variables(self) -> Dict[str, Any]:
        """Return the variables that the model created, by name, without those that the optimizer created."""
        return {name: each for name, each in self.variables.items() if name in self.model_variables}

    @property
    def examples(self) -> List[Any]:
        """Return the tensors of all batches; for a sparse tensor, its indices, values and shape."""
        return list(tf.nest.flatten(self.batches, expand_composites=True))

    def _evaluation(self, setter: Setter) -> Optional[Evaluation]:
        if not self.task.is_chief:
            return None
        first = self.pool[0]
        devices = self._devices(setter, first.task, first.devices[0])
        evaluation = Evaluation.build(self.job, self.task, self.args, devices, self.sharing)
        self._refuse_unknown_best(evaluation)
        return evaluation

    def _refuse_unknown_best(self, evaluation: Optional[Evaluation]) -> None:
        metric = self.train.best.metric
        if metric and evaluation is None:
            raise JobError(f"{self.job.path}: expected a function evaluate for train.best, found none; add it")
        if metric and evaluation is not None and not evaluation.measures(metric):
            names = ", ".join(evaluation.names)
            raise JobError(f"train.best: expected a metric of {self.job.path} ({names}), found {metric!r}")


def _after(before: GradsAndVars, batch: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the same tensors, which are there only after the gradients ``before``."""
    waited_for = [grad.values if isinstance(grad, tf.IndexedSlices) else grad for grad, _ in before if grad is not None]
    if not waited_for:
        return dict(batch)
    with tf.control_dependencies(waited_for):
        return dict(tf.nest.map_structure(tf.identity, batch, expand_composites=True))
