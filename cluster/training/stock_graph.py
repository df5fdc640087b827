"""The graph of TensorFlow's own documentation, for ``train.sync: stock``: no variable on a worker, none in slices.

Variables are on the servers, where ``tf.train.replica_device_setter`` puts them, each on the one that holds least so
far; every tower reads them there, and TensorFlow's own class makes the steps (``cluster.steps.stock_worker``).
"""

from dataclasses import replace
from typing import Any, Mapping

from cluster.embedding import lookups
from cluster.model.model_graph import ModelGraph
from cluster.model.state import LocalState, State
from cluster.model.update_operations import with_updates
from cluster.runtime.devices import ps_device
from cluster.runtime.tf_compat import tf
from cluster.steps.replica import Replica
from cluster.steps.stock_worker import StockWorker
from cluster.tables.refusals import refuse_anywhere, refuse_settings_of_none
from cluster.training.refusals import refuse_changing_in_stock, refuse_run_by_optimizer_in_stock
from cluster.updates.nan_guard import guard
from cluster.variables.layout import Layout
from cluster.variables.placement import Placement, device_setter
from cluster.variables.profile import profile_variables
from cluster.variables.uses import ancestors


def stock_replica(model: ModelGraph, estimate: bool) -> Replica:
    """Add all of it to the current graph."""
    task, train, num_ps = model.task, model.train, len(model.task.cluster["ps"])
    with tf.device(ps_device(0)):
        global_step = tf.train.get_or_create_global_step()
    placement = Placement(num_ps)
    model.build(lambda device: device_setter(placement, device), estimate)
    refuse_anywhere(lookups(tf.get_default_graph()), model.job, "train.sync: stock")
    refuse_settings_of_none([], model.job, train)
    grads = {variable.op.name: grad for grad, variable in model.gradients.pairs if grad is not None}
    _settle_state(model, grads)
    loss, named = guard(model.loss, grads, train.on_nan, model.gradients.scales)
    loss = with_updates(loss, model.updates if task.is_chief else [])
    pairs = [(grad, model.variables[name]) for grad, name in named]
    agreed = [*model.variables.values(), global_step]
    stepper = StockWorker(
        model.optimizer, pairs, global_step, loss, task.num_workers, task.worker_index, train.backup_workers
    )
    refuse_run_by_optimizer_in_stock(model.own_variables, model.sharing.operations(), model.examples, stepper.applied)
    looked_at = profile_variables(
        list(model.variables.values()), grads, False, ancestors([model.loss, *grads.values()])
    )
    whole = {name: replace(each, may_be_cut=False) for name, each in looked_at.items()}
    return Replica(
        tf.get_default_graph(),
        stepper,
        model.evaluation,
        placement,
        Layout(whole, num_ps),
        global_step,
        tf.global_variables(),
        agreed,
        [],
        model.prepare,
        model.start_input,
        [tf.global_variables_initializer()],
        measured=model.measured,
        batches=model.batches,
    )


def _settle_state(model: ModelGraph, grads: Mapping[str, Any]) -> None:
    """Let what the model changes itself change when the step is computed, once in a step; else refuse it."""
    results = [model.loss, *grads.values(), *(model.measured.tensors if model.measured else [])]
    step, later = ancestors(results), model.sharing.later_operations()
    state = State(model.own_variables, grads, step | ancestors(model.updates), later)
    refuse_changing_in_stock(model.optimizer, [model.variables[name] for name in state.changed])
    local = LocalState(tf.local_variables(), step | ancestors(model.updates), results)
    local.refuse_shared(later)
    if model.task.num_workers > 1:
        local.refuse_beside()
        state.refuse_by_each_worker(results)
    state.write_last(results)
    local.write_last()
