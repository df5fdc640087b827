"""The graph that one client builds: its data, its towers, its step.

*Between graphs* every worker builds the same model for its own devices, and the variables,
named alike and placed alike by everyone, are what they share. *In-graph* the chief builds
one graph with towers on the devices of every worker.
"""

from dataclasses import dataclass
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from cluster import finite
from cluster.asynchronous import Asynchronous
from cluster.crew import Member
from cluster.engine import tf
from cluster.evaluation import Evaluation
from cluster.exchange import Exchange
from cluster.job import Job
from cluster.measuring import Measured, measure
from cluster.overlap import OverlappedSyncOptimizer
from cluster.overlapping import Overlapping
from cluster.parcels import Parcel
from cluster.partition import SLICES
from cluster.piecewise import Piecewise
from cluster.placement import Placement, device_setter, ps_device, worker_device
from cluster.sync import TokenSyncOptimizer
from cluster.synchronous import Synchronous
from cluster.task import Task, Train
from cluster.towers import average_gradients, outputs_of, split_batch, tower_gradients
from cluster.units import stage_units
from cluster.updates import with_updates
from cluster.variables import SharedVariables, Source
from cluster.wire import Wire


@dataclass(frozen=True)
class Replica:
    """What a session needs of one worker's graph.

    ``variables`` are the global ones: on the chief those of a checkpoint, optimizer slots
    and global step included. ``agreed`` are those that every worker makes: in synchronous
    training only the chief has an optimizer's slots. ``parcels`` are what travels together.
    ``shared`` are the model's own variables.
    ``start_input`` makes the dataset begin.
    """

    graph: Any
    stepper: Union[Synchronous, Asynchronous]
    evaluation: Optional[Evaluation]  # None for a worker that is not the chief
    placement: Placement
    shared: SharedVariables
    variables: List[Any]
    agreed: List[Any]
    parcels: List[Parcel]
    start_input: Any


class Builder:
    """Builds the graph with which ``task`` trains, on the devices of its crew.

    Args:
      slices: chooses for the model's variables in how many slices a server holds them.
    """

    def __init__(
        self,
        job: Job,
        task: Task,
        train: Train,
        args: Mapping[str, Any],
        crew: Sequence[Member],
        slices: Callable[[Mapping[str, Measured]], int] = lambda measured: SLICES,
    ):
        self.job, self.task, self.train, self.args, self.crew = job, task, train, args, crew
        self._slices = slices
        self.host = worker_device(task.role, task.index)

    def build(self) -> Replica:
        """The graph, with everything in it that training needs.

        Raises:
          JobError: the job's code fails, or does not return what it should.
        """
        graph = tf.Graph()
        with graph.as_default(), tf.device(self.host):
            tf.set_random_seed(int(self.args.get("seed", 0)))
            with tf.device(ps_device(0)):
                global_step = tf.train.get_or_create_global_step()
            batches, start_input = self._inputs()
            measured, num_ps = self._measured(batches[0]), len(self.task.cluster["ps"])
            slices = self._slices(measured)
        # Servers that live may hold values and queues for slices of another size, under the same names.
        with graph.as_default(), tf.device(self.host), tf.container(f"slices-{slices}"):
            shared = SharedVariables(measured, num_ps, self.host, slices)
            placement = Placement(num_ps, shared.sizes)
            devices = [self._devices(placement, member.task, unit) for member in self.crew for unit in member.units]
            copies = shared.copies(placement.servers)
            with shared.scope(copies):
                losses = self._losses(batches, devices)
            agreed = tf.global_variables()
            exchange = Exchange(copies, Wire(self.train.wire))
            stepper = self._stepper(global_step, losses, devices, shared.sources(copies), exchange)
            copies.hand_back()
            with shared.scope():
                evaluation = self._evaluation(devices[0])
            made = tf.global_variables()
            return Replica(graph, stepper, evaluation, placement, shared, made, agreed, copies.parcels, start_input)

    def _devices(self, placement: Placement, task: Task, unit: str) -> List[Any]:
        """What places the stages of one tower of ``task``."""
        units = stage_units(unit, self.train.stages)
        return [device_setter(placement, worker_device(task.role, task.index, unit)) for unit in units]

    def _inputs(self) -> Tuple[List[Dict[str, Any]], Any]:
        """A batch of each member of the crew, read in its own memory, and what makes the datasets begin."""
        batches, starts = [], []
        for member in self.crew:
            with tf.device(worker_device(member.task.role, member.task.index)):
                batch, start = self._input(member.task)
            batches.append(batch)
            starts.append(start)
        return batches, tf.group(*starts)

    def _input(self, task: Task) -> Tuple[Dict[str, Any], Any]:
        with self.job.blamed():
            dataset = self.job.inputs(task, self.args)
        self.job.check("inputs", "a tf.data.Dataset", dataset, isinstance(dataset, tf.data.Dataset))
        iterator = tf.data.make_initializable_iterator(dataset.prefetch(2))
        batch = iterator.get_next()
        self.job.check("inputs", "a dataset of {name: tensor}", batch, isinstance(batch, dict))
        for name, value in batch.items():
            self._check_size(name, value.shape.as_list()[:1] if value.shape.ndims else [], task.batch_size)
        return batch, iterator.initializer

    def _check_size(self, name: str, size: List[Optional[int]], expected: int) -> None:
        ok = size in ([None], [expected])
        self.job.check("inputs", f"batches of task.batch_size = {expected}", f"batches of {size} as {name!r}", ok)

    def _measured(self, batch: Mapping[str, Any]) -> Dict[str, Measured]:
        """What the model's variables are like. Measuring builds the model once more."""
        specs = {name: (value.dtype, self._shape(value)) for name, value in batch.items()}
        with self.job.blamed():
            return measure(lambda: self._loss_of(**{name: tf.placeholder(*spec) for name, spec in specs.items()}))

    def _loss_of(self, **batch: Any) -> Any:
        return self.job.losses(self.job.model(**batch))[0]

    def _shape(self, value: Any) -> Any:
        return tf.TensorShape([self.task.batch_size]).concatenate(value.shape[1:]) if value.shape.ndims else value.shape

    def _losses(self, batches: Sequence[Dict[str, Any]], devices: Sequence[Any]) -> List[Any]:
        """The loss per example of each tower."""
        with self.job.blamed():
            parts = [split_batch(batch, len(member.units)) for batch, member in zip(batches, self.crew)]
            outputs = outputs_of(self.job.model, devices, [part for of_member in parts for part in of_member])
        return [self.job.losses(output)[0] for output in outputs]

    def _evaluation(self, device: Any) -> Optional[Evaluation]:
        return Evaluation.build(self.job, self.task, self.args, device) if self.task.is_chief else None

    def _stepper(
        self,
        global_step: Any,
        losses: Sequence[Any],
        devices: Sequence[Any],
        sources: Sequence[Source],
        exchange: Exchange,
    ) -> Union[Synchronous, Asynchronous]:
        task = self.task
        loss = tf.reduce_mean(tf.stack([tf.reduce_mean(loss) for loss in losses]))
        optimizer = self._optimizer()
        self.job.check("model", "one that depends on a trainable variable", "a loss without variables", bool(sources))
        gradients = average_gradients(tower_gradients(optimizer, losses, [each.value for each in sources], devices))
        guarded = finite.stopping if self.train.on_nan == "stop" else finite.ignoring
        loss, checked = guarded(loss, [(grad, source) for (grad, _), source in zip(gradients, sources)])
        averaged = [pair for grad, source in checked for pair in source.split(grad)]
        loss = with_updates(loss, self.task.is_chief)
        if self.train.mode == "async":
            return Asynchronous(optimizer, averaged, global_step, loss, self.train.clip_norm, exchange)
        if self._overlaps(optimizer, exchange):
            overlapped = OverlappedSyncOptimizer(optimizer, task.num_workers, task.worker_index, exchange)
            return Overlapping(overlapped, averaged, global_step, loss)
        whole = TokenSyncOptimizer(
            optimizer, task.num_workers, task.worker_index, self.train.backup_workers, self.train.clip_norm, exchange
        )
        return Synchronous(whole, averaged, global_step, loss)

    def _overlaps(self, optimizer: Any, exchange: Exchange) -> bool:
        """Whether each variable is updated as soon as its own gradients are there."""
        return self.train.may_overlap and Piecewise.can(optimizer) and bool(exchange.copies.parcels)

    def _optimizer(self) -> Any:
        with self.job.blamed():
            optimizer = self.job.optimizer(self.args)
        self.job.check("optimizer", "a tf.train.Optimizer", optimizer, isinstance(optimizer, tf.train.Optimizer))
        return optimizer
