"""Build the graph of one worker: its model, as plain TensorFlow builds it, and the transport around it.

*Between graphs* every worker builds the same model for its own devices, and all workers share the variables of the
servers. *In-graph* the chief builds one graph with towers on the devices of every worker.

    model_graph   the model on the worker's own variables, and its gradients
    model_uses    the graph's uses of each variable
    layout        the form of each variable on the servers: whole, or in slices
    masters       the servers' variables
    exchange      gradients to the servers, new values back into the worker's variables
"""

from typing import Any, Callable, List, Mapping, Optional, Sequence

from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.model.job_results import make_optimizer
from cluster.model.mirrors import Mirrors, device_setter
from cluster.model.model_graph import ModelGraph, set_seed
from cluster.model.model_state import with_updates
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.gradients import merge_rows
from cluster.runtime.tf_compat import tf
from cluster.steps.async_worker import AsyncWorker
from cluster.steps.base_worker import BaseWorker, HoldGate, StepParts
from cluster.steps.exchange import Exchange
from cluster.steps.extension import extensions, only, refuse_unfit
from cluster.steps.local_steps import LocalParts, LocalStepsWorker, rate_of
from cluster.steps.overlapped_sync import OverlappedWorker
from cluster.steps.replica import Replica
from cluster.steps.sync_worker import SyncWorker
from cluster.task import Task, Train
from cluster.training.model_uses import ModelUses, refuse_backup_of_changing, refuse_too_large
from cluster.training.run_steps import counting_by, servers_step
from cluster.training.stock_graph import stock_replica
from cluster.updates.counted_step import LEFT_OUT
from cluster.updates.imported_update import ImportedUpdate, VariableSpec
from cluster.updates.incremental_apply import IncrementalApply
from cluster.updates.nan_guard import guard
from cluster.variables.layout import Layout
from cluster.variables.local_copies import LocalCopies
from cluster.variables.masters import Masters
from cluster.variables.placement import SLICES, Placement
from cluster.variables.profile import VariableProfile
from cluster.variables.tables import move, split_rows
from cluster.variables.wire_format import Wire
from cluster.verify.digests import DigestReports


class Builder:
    """The builder of the graph with which ``task`` trains, on the devices of its pool.

    Args:
      slices: takes the profiles of the model's variables by name; returns the number of slices of a large variable.
      estimate: whether the graph is only described, and never run; then every batch counts as complete.
    """

    def __init__(
        self,
        job: Job,
        task: Task,
        train: Train,
        args: Mapping[str, Any],
        pool: Sequence[PoolMember],
        slices: Callable[[Mapping[str, VariableProfile]], int] = lambda profiles: SLICES,
        estimate: bool = False,
    ):
        self.job, self.task, self.train, self.args, self.pool = job, task, train, args, pool
        self._slices, self._estimate = slices, estimate
        self.host = worker_device(task.role, task.index)
        self.reports: Optional[DigestReports] = None

    def build(self) -> Replica:
        """Build the graph, and return its parts that training needs.

        Raises:
          JobError: the job's code fails, or returns a wrong value.
        """
        graph = tf.Graph()
        with graph.as_default(), tf.device(self.host):
            set_seed(self.task, self.args)
            self.model = ModelGraph(self.job, self.task, self.train, self.args, self.pool)
            if self.train.sync == "stock":
                return stock_replica(self.model, self._estimate)
            self.model.build(lambda device: device_setter(self.task, device), self._estimate)
            self.extensions = extensions(graph)
            refuse_unfit(self.model, self.extensions)
            self.uses = ModelUses(self.model, self.extensions)
            slices = self._slices(self.uses.profiles)
        # Servers that live may hold values and queues for slices of another size, under the same names.
        with graph.as_default(), tf.device(self.host), tf.container(f"slices-{slices}"):
            self.layout = Layout(self.uses.profiles, len(self.task.cluster["ps"]), slices)
            refuse_too_large(self.job, self.uses.profiles, self.layout.cuts)
            self._make_masters(f"slices-{slices}")
            return self._replica(graph)

    def _make_masters(self, container: str) -> None:
        self.placement = Placement(len(self.task.cluster["ps"]), self.layout.sizes)
        self.imported = None if self.uses.is_elementwise else self._import_update(container)
        self.global_step = self.imported.global_step if self.imported else servers_step()
        made = self.imported.masters if self.imported else None
        model = self.model
        self.masters = Masters(self.layout, self.placement.servers, model.variables, model.noted.found, made)
        self.lookups = {name: self._move(name) for name in self.masters.pieces if self.masters.is_table(name)}
        for each in self.extensions:
            each.make(model, self.uses.step, self.host, self.global_step)

    def _move(self, name: str) -> List[Any]:
        """Let the graph look up a table's rows on the servers.

        Returns:
          The rows that a training step looks up.
        """
        moved = move(self.model.variables[name], self.masters.pieces[name], self.host)
        return [rows for op, rows in moved.items() if op in self.uses.step]

    def _import_update(self, container: str) -> ImportedUpdate:
        specs = {
            name: VariableSpec(
                mirror,
                ps_device(self.placement.servers[name]),
                isinstance(self.uses.grads[name], tf.IndexedSlices) if name in self.uses.grads else None,
                name not in self.model.owned,
            )
            for name, mirror in self.model.variables.items()
        }
        with self.job.blame():
            imported = ImportedUpdate(
                make=lambda: make_optimizer(self.job, self.args),
                specs=specs,
                step_device=ps_device(0),
                container=container,
                clip_norm=self.train.clip_norm,
                changing=self.uses.changing,
                collections=self.model.collections,
                scopes=self.model.sharing.scopes.first,
            )
        imported.is_checked = self.model.gradients.scales
        if imported.may_leave_out:
            print(f"{self.task.name}: {LEFT_OUT}", flush=True)
        refuse_backup_of_changing(self.train, imported.reads_changing)
        return imported

    def _replica(self, graph: Any) -> Replica:
        exchange = self._exchange()
        known = len(tf.global_variables())
        stepper = self._stepper(exchange)
        if isinstance(stepper, AsyncWorker) and stepper.fetches_within and not stepper.overlaps:
            self.mirrors.fetch_within(
                self.uses.step, exchange.fetch(), self.uses.fetched, self.global_step.read_value()
            )
        slots = [*tf.global_variables()[known:], *(self.imported.others if self.imported else [])]
        saved = [variable for each in self.extensions for variable in each.saved]
        model = self.model
        return Replica(
            graph=graph,
            model=model,
            stepper=stepper,
            placement=self.placement,
            layout=self.layout,
            global_step=self.global_step,
            variables=[*self.masters.all, *slots, *saved, self.global_step],
            agreed=[*self.masters.all, *(variable for each in self.extensions for variable in each.agreed)],
            buckets=exchange.copies.buckets,
            first_values=self._first_values(),
            examples=model.parts.examples,
            reports=self.reports,
            extensions=self.extensions,
            first_slots=self._first_slots(slots),
            of_model=[
                piece for name, pieces in self.masters.pieces.items() if name not in model.owned for piece in pieces
            ],
        )

    def _exchange(self) -> Exchange:
        copies = LocalCopies(self.layout.buckets(self.placement.servers), self.layout.shapes, self.host)
        copies.adopt(self.masters.all)
        self.mirrors = Mirrors(self.model.variables, self.model.step, self.layout, self.masters)
        fetched = self.uses.fetched
        copies.load_into(lambda values, step: self.mirrors.assign(values, fetched, step), self.mirrors.fill)
        state = self.uses.state
        publish = (lambda: state.publish(self.masters)) if self.task.is_chief and state.changed else None
        if self.imported and self.imported.reads_changing:
            self.imported.publish, publish = publish, None
        return Exchange(copies, Wire(self.train.wire), publish, in_order=self.train.verify)

    def _first_values(self) -> List[Any]:
        """Chief: its own variables, and the servers' from these.

        Its own global step is among the first: the chief of a new run takes its first step with what it has here.
        """
        if not self.task.is_chief:
            return []
        own = [each for name, each in self.model.variables.items() if not self.masters.is_table(name)]
        own.append(self.model.step)
        first = [tf.variables_initializer(own), self.masters.first_values(), self.global_step.initializer]
        return [*first, *(given for each in self.extensions for given in each.first_values())]

    def _first_slots(self, slots: Sequence[Any]) -> List[Any]:
        """Chief: what the optimizer keeps, in the order of making; some of it may be made of the servers' variables."""
        if not self.task.is_chief:
            return []
        return [each.initializer for each in slots] if self.imported else [tf.variables_initializer(slots)]

    def _stepper(self, exchange: Exchange) -> BaseWorker:
        train, parts = self.train, self._step_parts(exchange)
        with counting_by(self.global_step):
            worker = only(each.worker(parts) for each in self.extensions)
            if worker is not None:
                return worker
            if train.mode == "async":
                gate = HoldGate(self.task)
                return AsyncWorker(parts, gate) if train.local_steps == 1 else self._local_worker(parts, gate)
            is_counted = parts.weight is None and bool(exchange.copies.buckets)
            if train.may_overlap and is_counted and IncrementalApply.supports(parts.optimizer):
                return OverlappedWorker(parts)
            return SyncWorker(parts)

    def _local_worker(self, parts: StepParts, gate: HoldGate) -> BaseWorker:
        with counting_by(self.model.step):  # a local step has the rate of the worker's own global step
            rate = rate_of(self.model.optimizer)
        load = lambda values, step: self.mirrors.assign(values, (), step)  # noqa: E731
        return LocalStepsWorker(parts, gate, LocalParts(self.train.local_steps, rate, load))

    def _step_parts(self, exchange: Exchange) -> StepParts:
        model, uses, train = self.model, self.uses, self.train
        with counting_by(self.global_step):
            optimizer = self.imported or make_optimizer(self.job, self.args)
        grads = {**uses.grads, **{name: grad for each in self.extensions for name, grad in each.grads.items()}}
        loss, pairs = guard(model.loss, grads, train.on_nan, model.gradients.scales)
        split = [pair for grad, name in pairs if name in uses.grads for pair in self._split(grad, name)]
        for each in self.extensions:
            optimizer, more = each.join(optimizer, {name: grad for grad, name in pairs if name in each.grads})
            split += more
        beside = [op for each in self.extensions for op in each.beside]
        updates = model.updates if self.task.is_chief else []
        return StepParts(
            optimizer=optimizer,
            grads_and_vars=split,
            global_step=self.global_step,
            loss=with_updates(loss, [*updates, *self._report(split), *beside]),
            num_workers=self.task.num_workers,
            worker_index=self.task.worker_index,
            exchange=exchange,
            clip_norm=None if self.imported else train.clip_norm,  # an imported update clips by itself, and later
            weight=model.parts.weight,
            beginnings=[each.begin for each in self.extensions],
            backup_workers=train.backup_workers,
        )

    def _report(self, pairs: Sequence[Any]) -> List[Any]:
        """Make, for ``launch verify``, the operation that reports this worker's step to the chief."""
        if not self.train.verify:
            return []
        grads, has_shards = [grad for grad, _ in pairs], self.model.place is not None
        self.reports = DigestReports(self.task, self.model.batches[0], grads, self.uses.given, has_shards)
        return [self.reports.send]

    def _split(self, grad: Any, name: str) -> List[Any]:
        """Return the (gradient, variable) pairs of the pieces of one variable."""
        pieces = self.masters.pieces[name]
        if not isinstance(grad, tf.IndexedSlices):
            return list(zip(self.masters.split(name, grad), pieces))
        # A gradient need not depend on the rows, and must not change them before they were taken.
        with tf.control_dependencies(self.lookups.get(name, [])):
            merged = merge_rows(grad)
        return list(zip(split_rows(merged, pieces), pieces))
