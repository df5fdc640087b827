"""Build the graph of one worker: its model, as plain TensorFlow builds it, and the transport around it.

*Between graphs* every worker builds the same model for its own devices; the variables that they share are the
servers'. *In-graph* the chief builds one graph with towers on the devices of every worker.

    model_graph   the model on the worker's own variables, and its gradients
    measuring     what the graph does with each variable
    layout        how the servers hold them: whole, or in slices
    masters       the servers' variables
    exchange      gradients to the servers, new values back into the worker's variables
"""

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

from cluster.embedding import lookups
from cluster.job import Job
from cluster.model.device_pool import PoolMember
from cluster.model.job_results import make_optimizer
from cluster.model.mirrors import Mirrors, device_setter, read_once
from cluster.model.model_graph import ModelGraph, set_seed
from cluster.model.model_state import State, changes, settle, with_updates
from cluster.recommend.once.own_places import OwnPlaces
from cluster.recommend.once.shard_places import Places
from cluster.recommend.tables.lookahead import Lookahead
from cluster.recommend.tables.stores import Stores
from cluster.recommend.tables.table_kinds import Travel
from cluster.recommend.tables.table_refusals import refuse, refuse_staleness
from cluster.runtime.devices import ps_device, worker_device
from cluster.runtime.gradients import merge_rows
from cluster.runtime.tf_compat import tf
from cluster.shards import sources
from cluster.steps.async_worker import AsyncWorker
from cluster.steps.base_worker import HoldGate
from cluster.steps.exchange import Exchange
from cluster.steps.once_async_worker import OnceAsyncWorker
from cluster.steps.once_sync import OnceSyncOptimizer, OnceWorker
from cluster.steps.overlapped_sync import OverlappedSyncOptimizer
from cluster.steps.overlapped_worker import OverlappedWorker
from cluster.steps.replica import Replica, Stepper
from cluster.steps.sync_worker import SyncWorker
from cluster.steps.token_sync import TokenSyncOptimizer
from cluster.task import Task, Train
from cluster.training.run_steps import counting_by, servers_step
from cluster.training.stock_graph import stock_replica
from cluster.training.unfit_variables import (
    refuse_backup_of_changing,
    refuse_cold_copies,
    refuse_too_large,
    refuse_unknown_shapes,
    refuse_unlisted,
)
from cluster.updates.counted_step import LEFT_OUT
from cluster.updates.imported_update import ImportedUpdate, VariableSpec
from cluster.updates.incremental_apply import IncrementalApply, is_elementwise
from cluster.updates.nan_guard import guard
from cluster.variables.layout import Layout
from cluster.variables.local_copies import LocalCopies
from cluster.variables.masters import Masters
from cluster.variables.placement import SLICES, Placement
from cluster.variables.profile import VariableProfile, profile_variables
from cluster.variables.tables import move, split_rows
from cluster.variables.uses import ancestors
from cluster.variables.wire_format import Wire
from cluster.verify.digests import DigestReports
from cluster.verify.givens import given_to


class Builder:
    """Build the graph with which ``task`` trains, on the devices of its pool.

    Args:
      slices: chooses for the model's variables in how many slices a server holds them.
      estimate: whether the graph is only looked at, and every batch has as many examples as it should.
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
        self.row_grads: Dict[str, Any] = {}  # of embedding tables, by name

    def build(self) -> Replica:
        """Return the graph, with everything in it that training needs.

        Raises:
          JobError: the job's code fails, or does not return what it should.
        """
        graph = tf.Graph()
        with graph.as_default(), tf.device(self.host):
            set_seed(self.task, self.args)
            self.model = ModelGraph(self.job, self.task, self.train, self.args, self.pool)
            if self.train.sync == "stock":
                return stock_replica(self.model, self._estimate)
            self.model.build(lambda device: device_setter(self.task, device), self._estimate)
            self._look()
            slices = self._slices(self.profiles)
        # Servers that live may hold values and queues for slices of another size, under the same names.
        with graph.as_default(), tf.device(self.host), tf.container(f"slices-{slices}"):
            self.layout = Layout(self.profiles, len(self.task.cluster["ps"]), slices)
            refuse_too_large(self.job, self.profiles, self.layout.cuts)
            self._make_masters(f"slices-{slices}")
            return self._replica(graph)

    def _look(self) -> None:
        """Measure how the model uses each of its variables."""
        model = self.model
        grads = {variable.op.name: grad for grad, variable in model.gradients.pairs if grad is not None}
        self.grads = grads
        measured = model.measured.tensors if model.measured else []
        step = ancestors([model.loss, *grads.values(), *measured])
        refuse_unlisted(self.job, grads, model.variables)
        refuse_unknown_shapes(self.job, model.variables)
        refuse_cold_copies(self.job, self.train, model.variables, model.owned)
        self.step = step | ancestors(model.updates)
        self.changing = list(changes(model.own_variables, self.step))
        moved = [model.variables[name] for name in self.changing]
        self.is_elementwise = is_elementwise(model.optimizer, moved)
        self.stores = self._make_stores()
        self.profiles: Dict[str, VariableProfile] = profile_variables(
            list(model.variables.values()), grads, self.is_elementwise, self.step
        )
        later = model.sharing.later_operations()
        self.state = State(model.own_variables, grads, self.step if self.task.is_chief else step, later)
        results = [model.loss, *grads.values(), *self.row_grads.values(), *measured]
        if self.train.verify:  # before lookups are moved to the servers
            self.given = given_to(model.sharing.operations[: len(model.losses)], ancestors(results))
        settle(self.state, results, self.step, later, self.task.num_workers)
        if self.task.num_workers > 1:
            self.state.refuse_own(model.examples, results)
        read_once([each for name, each in model.variables.items() if name in grads], self.step)

    def _make_stores(self) -> Optional[Stores]:
        """Return what holds the model's embedding tables; None without any.

        From here on their variables are none of the model's.

        Raises:
          JobError: tables are used in a way, or with settings, for which there is no right step.
        """
        found = lookups(tf.get_default_graph())
        refuse(found, self.job, self.train, self.is_elementwise)
        if not found:
            return None
        names = {each.table.name for each in found}
        for name in names:
            del self.model.variables[name]
        self.row_grads = {name: self.grads.pop(name) for name in names if name in self.grads}
        servers, waits = len(self.task.cluster["ps"]), self.train.mode == "sync"
        ahead, wire = self.train.table_staleness, Wire(self.train.wire if waits else "float32")
        stores = Stores(found, list(self.row_grads), self.model.optimizer, servers, Travel(waits, ahead, wire))
        for name in self.model.variables:
            ok = not any(f"{name}/".startswith(f"{kind.name}/") for kind in stores.kinds)
            self.job.check("model", "no variable with the name of the tables' rows", name, ok)
        return stores

    def _make_masters(self, container: str) -> None:
        self.placement = Placement(len(self.task.cluster["ps"]), self.layout.sizes)
        self.imported = None if self.is_elementwise else self._import_update(container)
        self.global_step = self.imported.global_step if self.imported else servers_step()
        made = self.imported.masters if self.imported else None
        model = self.model
        self.places = self._make_places()
        self.masters = Masters(self.layout, self.placement.servers, model.variables, model.noted.found, made)
        self.lookups = {name: self._move(name) for name in self.masters.pieces if self.masters.is_table(name)}
        self.lookahead = self._make_lookahead()
        if self.stores is not None:
            self.stores.move(self.step, self.host, self.lookahead)
        if self.lookahead is not None:
            self.lookahead.close()

    def _make_lookahead(self) -> Optional[Lookahead]:
        """Return what lets batches wait for their rows; None where each step looks up its own."""
        if not self.train.table_staleness:
            return None
        trained = [each for each in lookups(tf.get_default_graph()) if each.rows in self.step]
        refuse_staleness(trained, self.job, self.model.boundary, self.model.place is not None)
        return Lookahead(self.train.table_staleness, self.model.boundary, self.host, self.task.worker_index)

    def _make_places(self) -> Optional[Places]:
        """Return what counts the examples of shards; None for a dataset of the author's own."""
        if self.model.place is None:
            return None
        (source,) = sources(tf.get_default_graph())
        kind = OwnPlaces if self.train.mode == "async" else Places
        return kind(source, self.model.place, self.task, self.global_step, self.train.epochs)

    def _move(self, name: str) -> List[Any]:
        """Let the graph look up a table's rows on the servers.

        Returns:
          The rows that a training step looks up.
        """
        moved = move(self.model.variables[name], self.masters.pieces[name], self.host)
        return [rows for op, rows in moved.items() if op in self.step]

    def _import_update(self, container: str) -> ImportedUpdate:
        specs = {
            name: VariableSpec(
                mirror,
                ps_device(self.placement.servers[name]),
                isinstance(self.grads[name], tf.IndexedSlices) if name in self.grads else None,
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
                changing=self.changing,
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
        if isinstance(stepper, AsyncWorker) and not stepper.overlaps:
            self.mirrors.fetch_within(self.step, exchange.fetch(), self._fetched(), self.global_step.read_value())
        slots = [*tf.global_variables()[known:], *(self.imported.others if self.imported else [])]
        saved = self.places.saved if self.places else []
        agreed = [*self.masters.all, *saved, *(each.rows for each in (self.stores.all if self.stores else []))]
        model = self.model
        return Replica(
            graph=graph,
            stepper=stepper,
            evaluation=model.evaluation,
            placement=self.placement,
            layout=self.layout,
            global_step=self.global_step,
            variables=[*self.masters.all, *slots, *saved, self.global_step],
            agreed=agreed,
            buckets=exchange.copies.buckets,
            prepare=model.prepare,
            start_input=model.start_input,
            first_values=self._first_values(),
            examples=model.parts.examples,
            shares=model.parts.shares,
            reports=self.reports,
            tables=self.stores,
            measured=model.measured,
            places=self.places,
            first_slots=self._first_slots(slots),
            of_model=[
                piece for name, pieces in self.masters.pieces.items() if name not in model.owned for piece in pieces
            ],
            batches=[] if model.place is not None else model.batches,
        )

    def _exchange(self) -> Exchange:
        copies = LocalCopies(self.layout.buckets(self.placement.servers), self.layout.shapes, self.host)
        copies.adopt(self.masters.all)
        self.mirrors = Mirrors(self.model.variables, self.model.step, self.layout, self.masters)
        fetched = self._fetched()
        copies.load_into(lambda values, step: self.mirrors.assign(values, fetched, step), self.mirrors.fill)
        publish = (lambda: self.state.publish(self.masters)) if self.task.is_chief and self.state.changed else None
        if self.imported and self.imported.reads_changing:
            self.imported.publish, publish = publish, None
        return Exchange(copies, Wire(self.train.wire), publish, in_order=self.train.verify)

    def _fetched(self) -> List[str]:
        """Return the names of variables that a step must fetch outside of buckets.

        A step uses these variables, and they may have changed on the servers.
        """
        trained = [name for name in self.grads if not self.profiles[name].travels]
        state = [name for name in self.state.used if name not in self.state.changed]
        return [*trained, *([] if self.task.is_chief else state), *self.model.owned]

    def _first_values(self) -> List[Any]:
        """Chief: its own variables, and the servers' from these.

        Its own global step is among the first: the chief of a new run takes its first step with what it has here.
        """
        if not self.task.is_chief:
            return []
        own = [each for name, each in self.model.variables.items() if not self.masters.is_table(name)]
        own.append(self.model.step)
        first = [tf.variables_initializer(own), self.masters.first_values(), self.global_step.initializer]
        first += [each.first() for each in (self.stores.all if self.stores else [])]
        return [*first, *[each.initializer for each in (self.places.saved if self.places else [])]]

    def _first_slots(self, slots: Sequence[Any]) -> List[Any]:
        """Chief: what the optimizer keeps, in the order of making; some of it may be made of the servers' variables."""
        if not self.task.is_chief:
            return []
        return [each.initializer for each in slots] if self.imported else [tf.variables_initializer(slots)]

    def _stepper(self, exchange: Exchange) -> Stepper:
        task, train = self.task, self.train
        optimizer = self.imported or self._elementwise()
        grads = {**self.grads, **self.row_grads}
        loss, pairs = guard(self.model.loss, grads, train.on_nan, self.model.gradients.scales)
        weight = self.model.parts.weight
        split = [pair for grad, name in pairs if name in self.grads for pair in self._split(grad, name)]
        if self.stores:
            split += self.stores.pairs({name: grad for grad, name in pairs if name in self.row_grads})
            optimizer = self.stores.optimizer(optimizer)
        ahead = self.lookahead.beside if self.lookahead else []
        loss = with_updates(loss, [*(self.model.updates if task.is_chief else []), *self._report(split), *ahead])
        clip_norm = (
            None if self.imported else train.clip_norm
        )  # an imported update clips after what the optimizer itself does
        with counting_by(self.global_step):
            if train.mode == "async":
                applied = (optimizer, split, self.global_step, loss, clip_norm, exchange, HoldGate(task))
                if isinstance(self.places, OwnPlaces):
                    return OnceAsyncWorker(*applied, weight, self.places)
                return AsyncWorker(*applied)
            if (
                train.may_overlap
                and weight is None
                and IncrementalApply.supports(optimizer)
                and bool(exchange.copies.buckets)
            ):
                overlapped = OverlappedSyncOptimizer(optimizer, task.num_workers, task.worker_index, exchange)
                return OverlappedWorker(overlapped, split, self.global_step, loss, self.lookahead)
            own = (optimizer, task.num_workers, task.worker_index)
            if self.places:
                moving = {"clip_norm": clip_norm, "exchange": exchange, "weight": weight, "places": self.places}
                once = OnceSyncOptimizer(*own, **moving)
                return OnceWorker(once, split, self.global_step, loss, self.places)
            whole = TokenSyncOptimizer(*own, train.backup_workers, clip_norm, exchange, weight)
            return SyncWorker(whole, split, self.global_step, loss, self.lookahead)

    def _report(self, pairs: Sequence[Any]) -> List[Any]:
        """Make, for ``launch verify``, the operation that reports this worker's step to the chief."""
        if not self.train.verify:
            return []
        grads, has_shards = [grad for grad, _ in pairs], self.places is not None
        self.reports = DigestReports(self.task, self.model.batches[0], grads, self.given, has_shards)
        return [self.reports.send]

    def _elementwise(self) -> Any:
        """Return the optimizer that works on the servers' variables, and counts by their step."""
        with counting_by(self.global_step):
            return make_optimizer(self.job, self.args)

    def _split(self, grad: Any, name: str) -> List[Any]:
        """Return the (gradient, variable) pairs of the pieces of one variable."""
        pieces = self.masters.pieces[name]
        if not isinstance(grad, tf.IndexedSlices):
            return list(zip(self.masters.split(name, grad), pieces))
        # A gradient need not depend on the rows, and must not change them before they were taken.
        with tf.control_dependencies(self.lookups.get(name, [])):
            merged = merge_rows(grad)
        return list(zip(split_rows(merged, pieces), pieces))
